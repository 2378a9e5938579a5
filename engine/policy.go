package engine

import (
	"errors"
	"fmt"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// The bounds of policies. Each change copies the policies of a table, and each start reads them.
const (
	// MaxPolicies bounds the policies of a table.
	MaxPolicies = 1000
	// MaxPolicyLimits bounds the limits of one policy. Each limit is a limiter that every check finds and changes.
	MaxPolicyLimits = rule.MaxPolicyLimits
	// MaxPairs bounds the policies of one check. With eight limits each, a check has 128 limiters in one step,
	// which takes some tens of microseconds.
	MaxPairs = 16
	// MaxOverrides bounds the overrides of one policy for exact keys, and MaxGlobs the overrides for patterns. A
	// check tries every pattern.
	MaxOverrides = 1000
	MaxGlobs     = 32
	// MaxPolicyBytes bounds the encoded size of all policies of a table together.
	MaxPolicyBytes = 16 << 20
	// MaxReserved bounds the part of a limit that a policy reserves for high priority, in thousandths.
	MaxReserved = 999
)

// ErrPolicy is the error of Validate.
var ErrPolicy = errors.New("bad policy")

// Policy is a named set of limits. A check takes from all of them or from none. A policy in a set is immutable.
type Policy struct {
	Name string // 1..MaxPolicyLen bytes of letters, digits and -_.:
	// Version is 1 for a new policy and grows with each change.
	Version  uint64
	Limits   []PolicyLimit // 1..MaxPolicyLimits
	Shadow   bool          // decides and counts, and denies nobody
	Disabled bool          // admits without deciding
	RetryNs  int64         // the least retry time of a denial, 0..MaxWindowNs
	// Reserved is the part of each limit that only checks of high priority may take, in thousandths,
	// 0..MaxReserved.
	Reserved int64
	// Owner is the name of the team whose file the policy comes from, or empty. It has the form of a policy's
	// name. Decisions do not depend on it.
	Owner string
	// Layout is the form of the names under which operators see the limiters of this policy. Empty means the names
	// of NameOf. See Policies.OfLayout.
	Layout string
	// ReportNs changes the limit that decisions report for a bucket: the units that its rate gives in this time
	// (0..MaxWindowNs). 0 reports Limit.Max.
	ReportNs int64
	// Record makes the end of a hold and a lockout events.
	Record    bool
	Overrides []Override // in the order of matching: exact keys, then patterns, the longest first

	origin
	history

	// ready computes the following fields.
	dated       []PolicyLimit  // Limits with Since
	exact       map[string]int // the index in Overrides by exact key
	prefixes    []string       // the prefixes of limiter names, by limit
	hash        uint64         // of Name; computed by Table.ready
	bundleBytes int            // of the limiters in the bundle of a key; 0 for a policy without bundles
	apart       []int          // indexes in Limits, without 0: their limiters are in no bundle
	layout      layout         // Layout, parsed
	simple      bool           // no overrides, neither shadow nor disabled, previewable, and no Notify
	notifies    bool           // a limit has Notify
	tally       *tally
}

// PolicyLimit is one limit of a policy: of TokenBucket, LeakyBucket, FixedWindow,
// SlidingLog, SlidingCounter or Strike.
type PolicyLimit struct {
	Limit  Limit
	WaitNs int64 // as Op.WaitNs
	Zone   *Zone // the time zone of a calendar window; nil for any other window
	// Notify are the thresholds of which events report that the limit's used units reached them; of FixedWindow only.
	Notify Thresholds
}

// Override gives other limits to the keys that match a pattern.
type Override struct {
	Pattern string        // a key, or a pattern of MatchGlob; 1..MaxKeyLen bytes
	Limits  []PolicyLimit // none: no limit at all
	// UntilNs is the limiter time at which the override ends, or Never.
	UntilNs int64

	origin
	dated []PolicyLimit // Limits with Since; made by ready
}

// Glob reports whether the pattern may match more than one key.
func (o *Override) Glob() bool { return IsGlob([]byte(o.Pattern)) }

// Validate returns an error if a value of the policy is out of bounds. The text names the values that are
// accepted.
func (p *Policy) Validate() error {
	switch {
	case !validName(p.Name):
		return fmt.Errorf("%w: a name must be 1 to %d characters out of letters, digits and \"-_.:\"",
			ErrPolicy, MaxPolicyLen)
	case p.Owner != "" && !validName(p.Owner):
		return fmt.Errorf("%w: an owner must be 1 to %d characters out of letters, digits and \"-_.:\"",
			ErrPolicy, MaxPolicyLen)
	case p.RetryNs < 0 || p.RetryNs > MaxWindowNs:
		return fmt.Errorf("%w: RETRYAFTER must be at most 366 days", ErrPolicy)
	case p.ReportNs < 0 || p.ReportNs > MaxWindowNs:
		return fmt.Errorf("%w: REPORT must be at most 366 days", ErrPolicy)
	case p.Reserved < 0 || p.Reserved > MaxReserved:
		return fmt.Errorf("%w: RESERVED must be 0.1%% to 99.9%%", ErrPolicy)
	case len(p.Limits) == 0:
		return fmt.Errorf("%w: it needs a LIMIT", ErrPolicy)
	}
	if p.Layout != "" {
		if _, err := parseLayout(p.Layout, p.Name); err != nil {
			return err
		}
	}
	if err := validLimits(p.Limits); err != nil {
		return err
	}
	globs := 0
	for i := range p.Overrides {
		o := &p.Overrides[i]
		if len(o.Pattern) == 0 || len(o.Pattern) > MaxKeyLen || o.UntilNs <= 0 {
			return fmt.Errorf("%w: the pattern of an override is 1 to %d bytes", ErrPolicy, MaxKeyLen)
		}
		if err := validLimits(o.Limits); err != nil {
			return err
		}
		globs += int(arith.OneIf(o.Glob()))
	}
	if globs > MaxGlobs || len(p.Overrides)-globs > MaxOverrides {
		return fmt.Errorf("%w: at most %d overrides of keys and %d of patterns", ErrPolicy, MaxOverrides, MaxGlobs)
	}
	return nil
}

// IsPolicyName reports whether a policy may have this name.
func IsPolicyName(name []byte) bool { return validName(string(name)) }

func validName(name string) bool {
	for i := range len(name) {
		c := name[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
		if !letter && c != '-' && c != '_' && c != '.' && c != ':' {
			return false
		}
	}
	return len(name) > 0 && len(name) <= MaxPolicyLen
}

func validLimits(limits []PolicyLimit) error {
	if len(limits) > MaxPolicyLimits {
		return fmt.Errorf("%w: at most %d limits", ErrPolicy, MaxPolicyLimits)
	}
	for i := range limits {
		if !limits[i].valid() {
			return fmt.Errorf("%w: limit %d is out of bounds", ErrPolicy, i+1)
		}
	}
	return nil
}

// valid reports whether a policy may have the limit.
func (l *PolicyLimit) valid() bool {
	least, most := l.Limit.Algorithm.Sizes()
	calendar := l.Limit.Algorithm == FixedWindow && l.Limit.Mode.Calendar()
	if !l.Limit.Valid() || l.Limit.Max < least || l.Limit.Max > most || l.WaitNs < 0 || l.WaitNs > MaxWindowNs ||
		calendar != (l.Zone != nil) || calendar && !l.Zone.Valid() {
		return false
	}
	if !l.Notify.Valid() || l.Notify != "" && l.Limit.Algorithm != FixedWindow {
		return false
	}
	steps := l.Limit.Steps
	if l.Limit.Algorithm == Strike {
		return l.Limit.Max == steps.At(steps.Len()-1).Threshold
	}
	return steps == "" && l.Limit.Algorithm != Concurrency
}

// limitsFor returns the limits in force for a key at a time. An empty result means that the key has no limit.
func (p *Policy) limitsFor(key []byte, nowNs int64) []PolicyLimit {
	limits, _ := p.lookup(key, nowNs, false)
	return limits
}

// most returns the largest number of limits that a key may have.
func (p *Policy) most() int {
	n := len(p.Limits)
	for i := range p.Overrides {
		n = max(n, len(p.Overrides[i].Limits))
	}
	return n
}
