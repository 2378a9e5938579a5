package engine

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/weir-project/weir/engine/internal/store"
)

// Policies is an immutable set of all policies of a table. A change makes another set, so a decision sees one
// set from beginning to end.
type Policies struct {
	Layouts []*Policy // policies with a layout, in the order of layoutsOf

	byName map[string]*Policy
	bytes  int  // of all policies, encoded
	tells  bool // a policy may write events
	moves  bool // limiters of a policy may lag behind its definitions, or might have in an earlier set
}

// Get returns a policy by name, or nil.
func (s *Policies) Get(name []byte) *Policy { return s.byName[string(name)] }

// Len returns the number of policies.
func (s *Policies) Len() int { return len(s.byName) }

// LimitsFor returns the limits in force for a key at a time. An empty result means that the key has no limit.
// NameOf(i, key) is the name of the limiter of the i-th limit.
func (p *Policy) LimitsFor(at Stamp, key []byte) []PolicyLimit { return p.limitsFor(key, at.NowNs) }

// NameOf returns the name of the limiter of a limit for a key.
func (p *Policy) NameOf(limit int, key []byte) []byte {
	return append([]byte(p.prefixes[limit]), key...)
}

// LimiterName is NameOf for the name of a policy.
func LimiterName(policy string, limit int, key []byte) []byte {
	return append([]byte(cellPrefix(policy, limit)), key...)
}

// Names calls each with every name until it returns false. The order is random, so no decision may depend on it.
func (s *Policies) Names(each func(name string) (more bool)) {
	for name := range s.byName {
		if !each(name) {
			return
		}
	}
}

// All returns the policies in the order of their names.
func (s *Policies) All() []*Policy {
	return slices.SortedFunc(maps.Values(s.byName), func(a, b *Policy) int { return cmp.Compare(a.Name, b.Name) })
}

// with returns a copy of the set with p, which replaces a policy of the same name.
func (s *Policies) with(p *Policy) *Policies {
	next := s.without(p.Name)
	next.byName[p.Name] = p
	next.Layouts = layoutsOf(next.byName)
	next.tells = next.tells || p.notifies || p.Record
	next.moves = next.moves || p.moves
	next.bytes += len(p.appendStored(nil))
	return next
}

// without returns a copy of the set without a policy.
func (s *Policies) without(name string) *Policies {
	next := &Policies{byName: maps.Clone(s.byName), bytes: s.bytes, moves: s.moves}
	if old := next.byName[name]; old != nil {
		next.bytes -= len(old.appendStored(nil))
		delete(next.byName, name)
	}
	next.Layouts = layoutsOf(next.byName)
	for _, p := range next.All() {
		next.tells = next.tells || p.notifies || p.Record
	}
	return next
}

func newPolicies() *Policies { return &Policies{byName: map[string]*Policy{}} }

// ready prepares a policy for checks. It sorts the overrides and computes what each check would otherwise
// compute again.
func (p *Policy) ready(counts *tally) *Policy {
	slices.SortFunc(p.Overrides, func(a, b Override) int { return matchOrder(a.Pattern, b.Pattern) })
	p.exact = map[string]int{}
	for i := range p.Overrides {
		if !p.Overrides[i].Glob() {
			p.exact[p.Overrides[i].Pattern] = i
		}
	}
	p.readyHistory()
	p.notifies = p.hasThresholds()
	p.simple = !p.overridden && !p.Shadow && !p.Disabled && !p.notifies && p.previewable()
	p.bundleBytes = p.reservedBytes()
	p.apart = nil
	for i := 1; i < len(p.Limits); i++ {
		if p.bundleBytes == 0 || store.MemberLen(&p.Limits[i].Limit) == 0 {
			p.apart = append(p.apart, i)
		}
	}
	p.layout = layout{}
	if p.Layout != "" {
		p.layout, _ = parseLayout(p.Layout, p.Name) // Validate has accepted it
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

// tally counts the checks of a policy on this table. It is not part of the state. Each counter is split, so
// that shards do not contend for a cache line.
type tally [tallyParts]tallyPart

type tallyPart struct {
	admitted, denied, shadowed atomic.Int64
	_                          [40]byte // fills a cache line
}

func (t *tallyPart) count(admitted bool) {
	if admitted {
		t.admitted.Add(1)
	} else {
		t.denied.Add(1)
	}
}

const tallyParts = 16

// PolicyCounts are the outcomes of a policy's checks since the policy was created or loaded.
type PolicyCounts struct {
	Admitted int64
	Denied   int64 // by a limit of this policy
	Shadowed int64 // admitted only because the policy is a shadow
}

// Counts returns the outcomes of the policy's checks on this table.
func (p *Policy) Counts() (c PolicyCounts) {
	for i := range p.tally {
		c.Admitted += p.tally[i].admitted.Load()
		c.Denied += p.tally[i].denied.Load()
		c.Shadowed += p.tally[i].shadowed.Load()
	}
	return c
}

// previewable reports whether the policy has a single limit other than strikes, or only limits that evaluate
// can preview.
func (p *Policy) previewable() bool {
	if len(p.Limits) == 1 {
		return p.Limits[0].Limit.Algorithm != Strike
	}
	return !slices.ContainsFunc(p.Limits, func(l PolicyLimit) bool { return !l.Limit.Algorithm.Previewable() })
}

// reservedBytes returns how many bytes the limiters of a key take in a bundle, or 0 if fewer than two limits have such
// limiters.
func (p *Policy) reservedBytes() (room int) {
	members := 0
	for i := range p.Limits {
		if n := store.MemberLen(&p.Limits[i].Limit); n > 0 {
			room += n
			members++
		}
	}
	if members < 2 {
		return 0
	}
	return room
}

// hashPolicies hashes a set of policies. Their order does not matter.
func hashPolicies(h *store.Hasher, set *Policies) (sum uint64) {
	for name, p := range set.byName {
		b := append([]byte{policyClass, byte(len(name))}, name...)
		sum += h.Hash(p.appendStored(b))
	}
	return sum
}
