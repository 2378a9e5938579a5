package engine

import (
	"cmp"
	"slices"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/rule"
)

// A definition is the limits that a policy has for a key. From a change on the new definition counts, also for keys
// that no request asks for in between. A change visits no limiter, so it costs the same for any number of keys.
// Instead a limiter keeps the limit that it was brought to, with the moment since when that limit is in force, and the
// policy remembers its past definitions. Each access to a limiter first brings it through the changes since that
// moment, each as of its own time (catchup.go). So no answer depends on when that is done.
//
// A policy that is disabled, and an override without limits, change no usage: it ages under the limits that the key
// would otherwise have.

// maxPast bounds the past definitions that a policy remembers, because each change copies and stores them. A key that
// is idle through more changes keeps its definition until the oldest change that is remembered.
const maxPast = 128

// boundary is a moment at which a definition begins or ends, with the difference of wall clock and limiter time then.
type boundary struct {
	rule.Moment
	offsetNs int64
}

// definition is the limits of a policy or of an override, for a time.
type definition struct {
	pattern     string // of the override; empty: of the policy
	limits      []PolicyLimit
	from, until boundary
}

// origin is when limits came into force. It is zero for the first limits of a policy, and for limits that an older
// version of weir has set.
type origin struct {
	from  boundary
	since []rule.Moment // by limit: since when the policy has had this limit in this place; nil: all zero
}

// history is what a policy remembers of its changes.
type history struct {
	past    []definition // in the order of their ends
	horizon boundary     // the end of the last definition that is forgotten

	// ready computes the following fields.
	overridden bool // overrides exist or are remembered
	moves      bool // limiters may lag behind
	endedKeys  map[string]rule.Moment
	endedGlobs []endedGlob
}

// endedGlob is a pattern of past overrides, and the end of the last.
type endedGlob struct {
	pattern string
	until   rule.Moment
}

// sinceOf returns since when a limit has been in force.
func (o *origin) sinceOf(i int) rule.Moment {
	if i < len(o.since) {
		return o.since[i]
	}
	return rule.Moment{}
}

// followed returns the origin of limits that replace others at a boundary. A limit that stays keeps its origin.
func (o *origin) followed(old, next []PolicyLimit, at boundary) origin {
	to := origin{from: at}
	for i := range next {
		since := at.Moment
		if i < len(old) && sameLimit(&old[i], &next[i]) {
			since = o.sinceOf(i)
		}
		to.since = append(to.since, since)
	}
	return to
}

// sameLimit reports whether a limiter behaves alike under two limits.
func sameLimit(a, b *PolicyLimit) bool {
	x, y := a.Limit, b.Limit
	x.Since, y.Since = rule.Moment{}, rule.Moment{}
	return x == y && sameZone(a.Zone, b.Zone)
}

// sameWindows reports whether two limits count in the same windows. Their maximum may differ.
func sameWindows(a, b *PolicyLimit) bool {
	x, y := a.Limit, b.Limit
	x.Max, x.Since = y.Max, y.Since
	return x == y && x.Algorithm >= FixedWindow && x.Algorithm <= SlidingCounter && sameZone(a.Zone, b.Zone)
}

func sameZone(a, b *Zone) bool {
	return a == b || a != nil && b != nil && a.Name == b.Name && slices.Equal(a.Changes, b.Changes)
}

func sameLimits(a, b []PolicyLimit) bool {
	return slices.EqualFunc(a, b, func(x, y PolicyLimit) bool { return sameLimit(&x, &y) })
}

// follow records in a policy how its definitions differ from those of the policy before the change, at a boundary.
func (p *Policy) follow(old *Policy, at boundary) {
	p.past = slices.Clone(old.past)
	ends := func(pattern string, limits []PolicyLimit, from, until boundary) {
		if len(limits) > 0 {
			p.past = append(p.past, definition{pattern, limits, from, until})
		}
	}
	for i := range old.Overrides {
		if o := &old.Overrides[i]; o.UntilNs <= at.AtNs && o.from != (boundary{}) {
			ends(o.Pattern, o.Limits, o.from, o.end())
		}
	}
	for i := range old.Overrides {
		o := &old.Overrides[i]
		next := p.override(o.Pattern)
		if o.UntilNs > at.AtNs && (next == nil || !sameLimits(o.Limits, next.Limits)) {
			ends(o.Pattern, o.Limits, o.from, at)
		}
	}
	for i := range p.Overrides {
		o := &p.Overrides[i]
		if was := old.override(o.Pattern); was == nil || was.UntilNs <= at.AtNs {
			o.origin = o.followed(nil, o.Limits, at)
		} else if o.origin = was.origin; !sameLimits(was.Limits, o.Limits) {
			o.origin = was.followed(was.Limits, o.Limits, at)
		}
	}
	if !sameLimits(old.Limits, p.Limits) {
		ends("", old.Limits, old.from, at)
		p.origin = old.followed(old.Limits, p.Limits, at)
	}
	slices.SortStableFunc(p.past, func(a, b definition) int { return compareMoments(a.until.Moment, b.until.Moment) })
	if n := len(p.past) - maxPast; n > 0 {
		p.forgetPast(n)
	}
}

// forgetPast forgets the n oldest definitions.
func (p *Policy) forgetPast(n int) {
	p.horizon = p.past[n-1].until
	p.past = p.past[n:]
}

func compareMoments(a, b rule.Moment) int {
	return cmp.Or(cmp.Compare(a.AtNs, b.AtNs), cmp.Compare(a.Version, b.Version))
}

// override returns the override of a pattern, or nil.
func (p *Policy) override(pattern string) *Override {
	for i := range p.Overrides {
		if p.Overrides[i].Pattern == pattern {
			return &p.Overrides[i]
		}
	}
	return nil
}

// end returns when an override ends by its time to live.
func (o *Override) end() boundary {
	return boundary{rule.Moment{AtNs: o.UntilNs}, o.from.offsetNs}
}

// readyHistory computes what each check would otherwise compute again.
func (p *Policy) readyHistory() {
	p.dated = datedLimits(p.Limits, &p.origin)
	p.moves = len(p.past) > 0 || p.horizon != boundary{} || p.since != nil
	for i := range p.Overrides {
		o := &p.Overrides[i]
		o.dated = datedLimits(o.Limits, &o.origin)
		p.moves = p.moves || o.from != boundary{}
	}
	p.endedKeys, p.endedGlobs = nil, nil
	for i := range p.past {
		p.readyPast(&p.past[i])
	}
	p.overridden = len(p.Overrides) > 0 || p.endedKeys != nil || p.endedGlobs != nil
}

func (p *Policy) readyPast(d *definition) {
	switch {
	case d.pattern == "":
	case IsGlob([]byte(d.pattern)):
		p.endedGlobs = slices.DeleteFunc(p.endedGlobs, func(g endedGlob) bool { return g.pattern == d.pattern })
		p.endedGlobs = append(p.endedGlobs, endedGlob{d.pattern, d.until.Moment})
	default:
		if p.endedKeys == nil {
			p.endedKeys = map[string]rule.Moment{}
		}
		p.endedKeys[d.pattern] = d.until.Moment
	}
}

// datedLimits returns limits with Since.
func datedLimits(limits []PolicyLimit, o *origin) []PolicyLimit {
	dated := slices.Clone(limits)
	for i := range dated {
		dated[i].Limit.Since = o.sinceOf(i)
	}
	return dated
}

// matchOrder is the order in which the patterns of overrides are tried.
func matchOrder(a, b string) int {
	return cmp.Or(
		cmp.Compare(arith.OneIf(IsGlob([]byte(a))), arith.OneIf(IsGlob([]byte(b)))),
		cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
}

// matches reports whether the pattern of an override matches a key.
func matches(pattern string, key []byte) bool {
	if IsGlob([]byte(pattern)) {
		return MatchGlob([]byte(pattern), key)
	}
	return pattern == string(key)
}

// lookup finds the limits in force for a key at a time. Each of them has been in force since its own Since, or since
// the given moment if that is later. If aging, it ignores overrides without limits.
func (p *Policy) lookup(key []byte, nowNs int64, aging bool) (limits []PolicyLimit, since rule.Moment) {
	if !p.overridden {
		return p.dated, since
	}
	_, key = rule.CutDatabase(key)
	ended := func(o *Override) {
		if o.from != (boundary{}) && len(o.Limits) > 0 {
			since = since.Later(rule.Moment{AtNs: o.UntilNs})
		}
	}
	if i, ok := p.exact[string(key)]; ok {
		o := &p.Overrides[i]
		if o.UntilNs > nowNs && (len(o.Limits) > 0 || !aging) {
			return o.dated, since
		} else if o.UntilNs <= nowNs {
			ended(o)
		}
	}
	since = since.Later(p.endedKeys[string(key)])
	for i := len(p.exact); i < len(p.Overrides); i++ {
		o := &p.Overrides[i]
		if !MatchGlob([]byte(o.Pattern), key) {
			continue
		}
		if o.UntilNs > nowNs && (len(o.Limits) > 0 || !aging) {
			return o.dated, p.endedBefore(o.Pattern, key, since)
		} else if o.UntilNs <= nowNs {
			ended(o)
		}
	}
	return p.dated, p.endedBefore("", key, since)
}

// endedBefore returns the latest of a moment and the ends of past overrides that match a key and precede a pattern.
// Every pattern precedes the empty one.
func (p *Policy) endedBefore(pattern string, key []byte, since rule.Moment) rule.Moment {
	for i := range p.endedGlobs {
		g := &p.endedGlobs[i]
		if (pattern == "" || matchOrder(g.pattern, pattern) <= 0) && MatchGlob([]byte(g.pattern), key) {
			since = since.Later(g.until)
		}
	}
	return since
}

// limitChange is a change of one limit for a key: to no limit if to is nil.
type limitChange struct {
	boundary
	to *PolicyLimit
	// sameWindows: no window begins or ends at another time, so holds give units back as before.
	sameWindows bool
}

// limitChanges returns the changes of a limit for a key, from the moment since when a limiter's limit was in force
// until a time.
func (p *Policy) limitChanges(key []byte, number int, old *Limit, untilNs int64) (found []limitChange) {
	all := p.definitionsOf(key)
	var boundaries []boundary
	for _, at := range append(all.boundaries(), p.horizon) {
		if old.Since.Before(at.Moment) && at.AtNs <= untilNs && !at.Before(p.horizon.Moment) {
			boundaries = append(boundaries, at)
		}
	}
	slices.SortFunc(boundaries, func(a, b boundary) int { return compareMoments(a.Moment, b.Moment) })
	was := all.at(old.Since, number)
	if entry := (PolicyLimit{Limit: *old}); was == nil || !sameLimit(&PolicyLimit{Limit: was.Limit}, &entry) {
		was = &entry
	}
	for _, at := range boundaries {
		to := all.at(at.Moment, number)
		if to == nil && was == nil || to != nil && was != nil && sameLimit(to, was) {
			continue
		}
		found = append(found, limitChange{at, to, to != nil && was != nil && sameWindows(to, was)})
		was = to
	}
	return found
}

// definitions are the present and past definitions that match a key, in the order in which they are tried.
type definitions []definition

func (p *Policy) definitionsOf(key []byte) (all definitions) {
	_, key = rule.CutDatabase(key)
	add := func(d definition) {
		if len(d.limits) > 0 && (d.pattern == "" || matches(d.pattern, key)) {
			all = append(all, d)
		}
	}
	for i := range p.Overrides {
		o := &p.Overrides[i]
		add(definition{o.Pattern, o.Limits, o.from, o.end()})
	}
	for i := range p.past {
		add(p.past[i])
	}
	add(definition{"", p.Limits, p.from, boundary{Moment: rule.Moment{AtNs: Never}}})
	slices.SortStableFunc(all, func(a, b definition) int {
		if base := cmp.Compare(arith.OneIf(a.pattern == ""), arith.OneIf(b.pattern == "")); base != 0 {
			return base
		}
		return matchOrder(a.pattern, b.pattern)
	})
	return all
}

// boundaries returns the moments at which definitions begin or end.
func (all definitions) boundaries() (list []boundary) {
	for i := range all {
		list = append(list, all[i].from, all[i].until)
	}
	return list
}

// at returns a limit of the definition in force at a moment, or nil if it has none of this number.
func (all definitions) at(m rule.Moment, number int) *PolicyLimit {
	for i := range all {
		d := &all[i]
		if !m.Before(d.from.Moment) && m.Before(d.until.Moment) {
			if number < len(d.limits) {
				return &d.limits[number]
			}
			return nil
		}
	}
	return nil
}
