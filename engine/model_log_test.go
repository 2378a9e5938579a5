package engine_test

import "github.com/weir-project/weir/engine"

// events is a list of units by the instant of taking, oldest first.
type events []event

type event struct{ atNs, units int64 }

// since returns the units taken after an instant.
func (e events) since(ns int64) events {
	for i := range e {
		if e[i].atNs > ns {
			return e[i:]
		}
	}
	return nil
}

func (e events) units() (n int64) {
	for _, v := range e {
		n += v.units
	}
	return n
}

func (e events) with(v event) events {
	return append(e[:len(e):len(e)], v)
}

// withoutNewest returns e without its n newest units.
func (e events) withoutNewest(n int64) events {
	e = append(events(nil), e...)
	for n > 0 && len(e) > 0 {
		last := &e[len(e)-1]
		if last.units > n {
			last.units -= n
			break
		}
		n -= last.units
		e = e[:len(e)-1]
	}
	return e
}

// withoutOldest returns e without its n oldest units.
func (e events) withoutOldest(n int64) events {
	for n > 0 && len(e) > 0 {
		if e[0].units > n {
			return append(events{{e[0].atNs, e[0].units - n}}, e[1:]...)
		}
		n -= e[0].units
		e = e[1:]
	}
	return e
}

// freedNs returns the instant at which only n units are left in the window.
func (e events) freedNs(n, windowNs int64) int64 {
	used := e.units()
	for _, v := range e {
		if used -= v.units; used <= n {
			return v.atNs + windowNs
		}
	}
	panic("nothing to wait for")
}

// endNs returns when the newest unit leaves the window, or now without one.
func (e events) endNs(at engine.Stamp, windowNs int64) int64 {
	if len(e) == 0 {
		return at.NowNs
	}
	return e[len(e)-1].atNs + windowNs
}

// slidingLog remembers every admitted unit.
type slidingLog struct {
	limit engine.Limit
	log   events
}

func (s slidingLog) algorithm() engine.Algorithm { return engine.SlidingLog }
func (s slidingLog) remembered() engine.Limit    { return s.limit }
func (s slidingLog) used(at engine.Stamp) int64  { return s.under(at, s.limit).log.units() }
func (s slidingLog) idle(at engine.Stamp) bool   { return len(s.under(at, s.limit).log) == 0 }

// under returns the log now, as it counts under limit l: the units in both the window of l and the remembered window.
func (s slidingLog) under(at engine.Stamp, l engine.Limit) slidingLog {
	return slidingLog{l, s.log.since(at.NowNs - s.limit.WindowNs).since(at.NowNs - l.WindowNs)}
}

func (s slidingLog) take(at engine.Stamp, op *engine.Op) (engine.Decision, rule) {
	s = s.under(at, op.Limit)
	used := s.log.units()
	n, fits := fitting(op, s.limit.Max-used)
	d := engine.Decision{Limit: s.limit.Max}
	switch {
	case fits:
		d.Allowed = granted(op, n)
		if n > 0 {
			s.log = s.log.with(event{at.NowNs, n})
		}
	case op.Cost > s.limit.Max && !op.Partial:
		n, d.RetryMs = 0, -1
	default:
		n = 0
		freedNs := s.log.freedNs(s.limit.Max-wanted(op), s.limit.WindowNs)
		d.RetryMs = msUp(num(freedNs - at.NowNs))
	}
	d.Remaining = max(0, s.limit.Max-s.log.units())
	d.ResetMs = msUp(num(s.log.endNs(at, s.limit.WindowNs) - at.NowNs))
	return taken(d, n, s)
}

func (s slidingLog) refund(at engine.Stamp, n int64) (engine.Decision, rule) {
	after := s.under(at, s.limit)
	after.log = after.log.withoutNewest(n)
	return afterRefund(at, n, after)
}

// strikes counts failures and blocks at thresholds.
type strikes struct {
	limit          engine.Limit
	log            events
	blockedUntilNs int64
}

func (s strikes) algorithm() engine.Algorithm { return engine.Strike }
func (s strikes) remembered() engine.Limit    { return s.limit }
func (s strikes) used(at engine.Stamp) int64  { return s.under(at, s.limit).log.units() }

func (s strikes) idle(at engine.Stamp) bool {
	return at.NowNs >= s.blockedUntilNs && len(s.under(at, s.limit).log) == 0
}

func (s strikes) under(at engine.Stamp, l engine.Limit) strikes {
	log := s.log.since(at.NowNs - s.limit.WindowNs).since(at.NowNs - l.WindowNs)
	return strikes{l, log, s.blockedUntilNs}
}

func (s strikes) take(at engine.Stamp, op *engine.Op) (engine.Decision, rule) {
	s = s.under(at, op.Limit)
	attempts, extends := s.limit.Strikes&engine.Attempts != 0, s.limit.Strikes&engine.Extend != 0
	before := s.log.units()
	running := at.NowNs < s.blockedUntilNs
	n := min(op.Cost, engine.MaxLogUnits)
	if running && !extends {
		n = 0
	}
	d := engine.Decision{Limit: s.limit.Max, Allowed: one(!running)}
	if n > 0 {
		s.log = s.log.with(event{at.NowNs, n})
		most := int64(engine.MaxLogUnits)
		if running { // a strike beyond the last threshold has no effect during a penalty
			most = max(s.limit.Max, 1)
		}
		s.log = s.log.withoutOldest(s.log.units() - most)
		penaltyNs, last := penalty(s.limit.Steps, before, s.log.units(), running)
		if penaltyNs > 0 {
			s.blockedUntilNs = max(s.blockedUntilNs, at.NowNs+penaltyNs)
			d.Allowed = one(!running && attempts)
		}
		if d.Allowed > 0 {
			d.RetryMs = msUp(num(delay(s.limit.Steps, s.log.units())))
		}
		if last && (!running || before < s.limit.Max) && !op.Dry {
			d.Locked = 1
		}
	}
	if d.Allowed == 0 {
		d.RetryMs = msUp(num(s.blockedUntilNs - at.NowNs))
	}
	d.Remaining = max(0, s.limit.Max-s.log.units())
	idleNs := max(s.blockedUntilNs, s.log.endNs(at, s.limit.WindowNs), at.NowNs)
	d.ResetMs = msUp(num(idleNs - at.NowNs))
	return taken(d, n, s)
}

// penalty returns the length of the penalty that begins when strikes grow from before to after, and whether it is that
// of the last step. With anew it is the penalty of the highest step that after reaches.
func penalty(steps engine.Steps, before, after int64, anew bool) (ns int64, last bool) {
	for i := steps.Len() - 1; i >= 0; i-- {
		step := steps.At(i)
		if step.Delay || after < step.Threshold {
			continue
		}
		if last = i == steps.Len()-1; before < step.Threshold || last || anew {
			return step.PenaltyNs, last
		}
	}
	return 0, false
}

// delay returns how long the response to the last of some strikes is delayed.
func delay(steps engine.Steps, strikes int64) (ns int64) {
	for i := range steps.Len() {
		if step := steps.At(i); step.Delay && step.Threshold <= strikes {
			ns = step.PenaltyNs
		}
	}
	return ns
}

func (s strikes) refund(at engine.Stamp, n int64) (engine.Decision, rule) {
	after := s.under(at, s.limit)
	n = min(n, after.log.units())
	after.log = after.log.withoutNewest(n)
	return afterRefund(at, n, after)
}
