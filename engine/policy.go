package engine

import (
	"errors"
	"fmt"

	"github.com/weir-project/weir/engine/internal/arith"
)

// The bounds of policies: what a table holds of them is copied and looked through
// at every change, and read at every start.
const (
	// MaxPolicies bounds the policies of a table.
	MaxPolicies = 1000
	// MaxPolicyLimits bounds the limits of one policy: each is a limiter to find and to
	// change in every check.
	MaxPolicyLimits = 8
	// MaxPairs bounds the policies of one check: with eight limits each that is 128
	// limiters in one step, some tens of microseconds.
	MaxPairs = 16
	// MaxOverrides bounds the overrides of one policy for exact keys, MaxGlobs those
	// for patterns: a check tries every pattern.
	MaxOverrides = 1000
	MaxGlobs     = 32
	// MaxPolicyBytes bounds all policies of a table together, encoded.
	MaxPolicyBytes = 16 << 20
	// MaxReserved bounds the part of a policy kept for high priority, in thousandths.
	MaxReserved = 999
)

// ErrPolicy is what Validate finds wrong.
var ErrPolicy = errors.New("bad policy")

// Policy is a named rule: limits that a check takes from all together or not at
// all. One that is in a set does not change any more.
type Policy struct {
	Name string // 1..MaxPolicyLen bytes of letters, digits and -_.:
	// Version is 1 for a new policy and grows with each change.
	Version  uint64
	Limits   []PolicyLimit // 1..MaxPolicyLimits
	Shadow   bool          // decides and counts, and admits all the same
	Disabled bool          // admits without deciding
	RetryNs  int64         // a denial says to wait at least this, 0..MaxWindowNs
	// Reserved is the part of each limit that only checks of high priority may take, in
	// thousandths, 0..MaxReserved.
	Reserved int64
	// Owner labels the policy with the team whose file it comes from; formed as a name, or
	// empty for nobody. Decisions do not depend on it.
	Owner string
	// Layout is how people name the limiters of this policy; empty: as NameOf does. See
	// Policies.OfLayout.
	Layout string
	// ReportNs makes decisions tell, as their limit, what the rate of a bucket gives in this
	// time (0..MaxWindowNs) instead of how much the bucket holds; 0: that.
	ReportNs  int64
	Overrides []Override // in the order in which they are tried: exact keys, then the longest pattern first

	exact    map[string]int // of Overrides
	prefixes []string       // of the names of its limiters, by limit
	hash     uint64         // of its name, see Table.ready
	layout   layout         // Layout, read
	simple   bool           // the same limits bind whatever the key, and can be previewed or are only one
	tally    *tally
}

// PolicyLimit is one limit of a policy: of TokenBucket, LeakyBucket, FixedWindow,
// SlidingLog, SlidingCounter or Strike.
type PolicyLimit struct {
	Limit  Limit
	WaitNs int64 // as Op.WaitNs
	Zone   *Zone // of a calendar window
}

// Override gives the keys that match a pattern other limits.
type Override struct {
	Pattern string        // a key, or a pattern of MatchGlob; 1..MaxKeyLen bytes
	Limits  []PolicyLimit // none: no limit at all
	// UntilNs is the limiter time at which the override ends, or Never.
	UntilNs int64
}

// Glob reports whether the pattern may match more than one key.
func (o *Override) Glob() bool { return IsGlob([]byte(o.Pattern)) }

// Validate reports what a table could not compute with; the text says what is
// accepted.
func (p *Policy) Validate() error {
	switch {
	case !validName(p.Name):
		return fmt.Errorf("%w: a name is made of 1 to %d letters, digits, or one of -_.: each", ErrPolicy, MaxPolicyLen)
	case p.Owner != "" && !validName(p.Owner):
		return fmt.Errorf("%w: an owner is made of 1 to %d letters, digits, or one of -_.: each", ErrPolicy, MaxPolicyLen)
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

// valid reports whether the arithmetic holds for a limit.
func (l *PolicyLimit) valid() bool {
	within := func(v, low, high int64) bool { return low <= v && v <= high }
	r := l.Limit.Rate
	rated := within(r.Units, 1, MaxUnits) && within(r.PerNs, 1, MaxWindowNs)
	windowed := within(l.Limit.WindowNs, 1, MaxWindowNs)
	if (l.Limit.Steps != "") != (l.Limit.Algorithm == Strike) || !l.Limit.Strikes.ValidFor(l.Limit.Algorithm) ||
		!within(l.Limit.Max, 0, MaxUnits) || !within(l.WaitNs, 0, MaxWindowNs) {
		return false
	}
	switch l.Limit.Algorithm {
	case TokenBucket:
		return rated && l.Limit.Max > 0
	case LeakyBucket:
		return rated
	case FixedWindow:
		calendar := l.Limit.Mode >= Day && l.Limit.Mode <= Year
		return l.Limit.Max > 0 && l.Limit.Mode <= Forever && (windowed || l.Limit.Mode >= Day) &&
			calendar == (l.Zone != nil) && (l.Zone == nil || l.Zone.Valid())
	case SlidingLog:
		return windowed && within(l.Limit.Max, 1, MaxLogUnits)
	case SlidingCounter:
		return windowed && l.Limit.Max > 0
	case Strike:
		return windowed && l.Limit.Steps.Valid() && l.Limit.Max == l.Limit.Steps.At(l.Limit.Steps.Len()-1).Threshold
	}
	return false
}

// limitsFor returns the limits in force for a key at a time; none means no limit.
func (p *Policy) limitsFor(key []byte, nowNs int64) []PolicyLimit {
	if len(p.Overrides) == 0 {
		return p.Limits
	}
	if i, ok := p.exact[string(key)]; ok && p.Overrides[i].UntilNs > nowNs {
		return p.Overrides[i].Limits
	}
	for i := len(p.exact); i < len(p.Overrides); i++ {
		if o := &p.Overrides[i]; o.UntilNs > nowNs && MatchGlob([]byte(o.Pattern), key) {
			return o.Limits
		}
	}
	return p.Limits
}

// most is the largest number of limits a key may have.
func (p *Policy) most() int {
	n := len(p.Limits)
	for i := range p.Overrides {
		n = max(n, len(p.Overrides[i].Limits))
	}
	return n
}
