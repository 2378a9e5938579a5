package engine

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// Policies are all policies of a table at one moment. A set never changes: a change
// makes another, and a decision sees one of them from beginning to end.
type Policies struct {
	byName  map[string]*Policy
	bytes   int       // of all policies, encoded
	layouts []*Policy // those that have one, by name
}

// Get returns a policy, or nil.
func (s *Policies) Get(name []byte) *Policy { return s.byName[string(name)] }

// Len is the number of policies.
func (s *Policies) Len() int { return len(s.byName) }

// LimitsFor returns the limits in force for a key at a time; none means no limit. The
// i-th has the limiter that NameOf(i, key) names.
func (p *Policy) LimitsFor(at Stamp, key []byte) []PolicyLimit { return p.limitsFor(key, at.NowNs) }

// NameOf returns the name of the limiter of a limit for a key.
func (p *Policy) NameOf(limit int, key []byte) []byte {
	return append([]byte(p.prefixes[limit]), key...)
}

// LimiterName is NameOf for a policy that is known by its name.
func LimiterName(policy string, limit int, key []byte) []byte {
	return append([]byte(cellPrefix(policy, limit)), key...)
}

// Names tells of every name, in no order, until told to stop: for texts, not for decisions.
func (s *Policies) Names(each func(name string) (more bool)) {
	for name := range s.byName {
		if !each(name) {
			return
		}
	}
}

// All returns the policies by name.
func (s *Policies) All() []*Policy {
	return slices.SortedFunc(maps.Values(s.byName), func(a, b *Policy) int { return cmp.Compare(a.Name, b.Name) })
}

// with returns the set with p in it, in place of one of the same name.
func (s *Policies) with(p *Policy) *Policies {
	next := s.without(p.Name)
	next.byName[p.Name] = p
	next.layouts = layoutsOf(next.byName)
	next.bytes += len(p.Append(nil))
	return next
}

// without returns the set without a policy.
func (s *Policies) without(name string) *Policies {
	next := &Policies{byName: maps.Clone(s.byName), bytes: s.bytes}
	if old := next.byName[name]; old != nil {
		next.bytes -= len(old.Append(nil))
		delete(next.byName, name)
	}
	next.layouts = layoutsOf(next.byName)
	return next
}

func newPolicies() *Policies { return &Policies{byName: map[string]*Policy{}} }

// ready prepares a policy for checks: it orders the overrides and finds what would
// otherwise be looked for each time.
func (p *Policy) ready(counts *tally) *Policy {
	slices.SortFunc(p.Overrides, func(a, b Override) int {
		if x := cmp.Compare(arith.OneIf(a.Glob()), arith.OneIf(b.Glob())); x != 0 {
			return x
		}
		if x := cmp.Compare(len(b.Pattern), len(a.Pattern)); x != 0 {
			return x
		}
		return cmp.Compare(a.Pattern, b.Pattern)
	})
	p.exact = map[string]int{}
	for i := range p.Overrides {
		if !p.Overrides[i].Glob() {
			p.exact[p.Overrides[i].Pattern] = i
		}
	}
	p.simple = len(p.Overrides) == 0 && !p.Shadow && !p.Disabled && p.previewable()
	p.layout = layout{}
	if p.Layout != "" {
		p.layout, _ = parseLayout(p.Layout, p.Name) // Validate has found it valid
	}
	p.prefixes = nil
	for i := range p.most() {
		p.prefixes = append(p.prefixes, cellPrefix(p.Name, i))
	}
	if p.tally = counts; counts == nil {
		p.tally = new(tally)
	}
	return p
}

// tally counts the checks of a policy on this table. It is no part of the state.
// Each counter is split, so that shards do not wait for each other.
type tally [tallyParts]tallyPart

type tallyPart struct {
	admitted, denied, shadowed atomic.Int64
	_                          [40]byte // a cache line each
}

func (t *tallyPart) count(admitted bool) {
	if admitted {
		t.admitted.Add(1)
	} else {
		t.denied.Add(1)
	}
}

const tallyParts = 16

// PolicyCounts is what became of the checks of a policy, as long as its table lives.
type PolicyCounts struct {
	Admitted int64
	Denied   int64 // by a limit of this policy
	Shadowed int64 // admitted only because the policy is a shadow
}

// Counts returns what became of the policy's checks on this node.
func (p *Policy) Counts() (c PolicyCounts) {
	for i := range p.tally {
		c.Admitted += p.tally[i].admitted.Load()
		c.Denied += p.tally[i].denied.Load()
		c.Shadowed += p.tally[i].shadowed.Load()
	}
	return c
}

// previewable reports whether the policy has one limit, but not of strikes, or only limits
// that next knows.
func (p *Policy) previewable() bool {
	if len(p.Limits) == 1 {
		return p.Limits[0].Limit.Algorithm != Strike
	}
	return !slices.ContainsFunc(p.Limits, func(l PolicyLimit) bool { return !l.Limit.Algorithm.Previewable() })
}

// hashPolicies hashes a set; the order does not matter.
func hashPolicies(h *store.Hasher, set *Policies) (sum uint64) {
	for name, p := range set.byName {
		b := append([]byte{policyClass, byte(len(name))}, name...)
		sum += h.Hash(p.Append(b))
	}
	return sum
}
