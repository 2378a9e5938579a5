package engine

import "math"

// ScriptID names a script of a published limiter library that OpScript carries out
// natively: what the script would have done to the keys of a Redis whose clock is
// limiter time. It stands in the log of a cluster, so that numbers are never reused.
type ScriptID uint8

// The scripts. What each does stands in the file named after its dialect.
const (
	NoScript             ScriptID = iota
	RedisRateAllowN               // burst, rate, period s, cost
	RedisRateAllowAtMost          // burst, rate, period s, cost
	CountGet                      // GET and PTTL
	CountSet                      // number, ms
	CountAdd                      // by
	CountExpire                   // ms
	FlexibleConsume               // points, duration s
	ExpressHit                    // window ms
	ExpressHitReset               // reset, window ms
	ExpressCount                  // reset, window ms
	ExpressCountZero              // reset, window ms
	FastifyHit                    // window ms, max, go on, back off
	FastifyHitTTL                 // window ms, max, go on, back off
	FastifyHitBan                 // window ms, max, ban, go on
	FastifyRead
	UluleIncr // count, window ms
	UlulePeek
	LimitsIncr  // window s, amount
	FastapiHit  // limit, window ms
	ZeroPeriod  // limit, window s
	ZeroToken   // rate, burst, now s, requested
	SpringTake  // rate, capacity, now s, requested, whether now counts
	NestHit     // unused, window ms, limit, block ms
	LimitsSlide // limit, window s, amount
	LimitsLook  // window s
	RedisGCRA   // now ms, burst, rate, period ms, cost
	NumScripts
)

// MaxScriptArgs is the most numbers any script takes.
const MaxScriptArgs = 6

// Script is the argument of OpScript. Numbers are doubles, as in the Lua of Redis.
type Script struct {
	ID   ScriptID
	Args [MaxScriptArgs]float64 // finite; what each means depends on the script
}

// Sound reports whether the script is one that this engine knows, with numbers it
// can be given.
func (s *Script) Sound() bool {
	for _, a := range s.Args {
		if math.IsNaN(a) || math.IsInf(a, 0) {
			return false
		}
	}
	return s.ID > NoScript && s.ID < NumScripts
}

// ScriptAnswer is what a script answers, out of a Decision: up to four words, each a
// whole number or the bits of a double, as the script has it.
func (d *Decision) ScriptAnswer() [4]int64 {
	return [4]int64{d.Remaining, d.RetryMs, d.ResetMs, d.Limit}
}

// scripts says of each what it keeps under its key and what it does.
var scripts = [NumScripts]struct {
	shape scriptShape
	run   func(*scriptRun)
	// blocked answers on a key that is blocked for so many milliseconds more; -1:
	// without end. It changes nothing.
	blocked func(r *scriptRun, leftMs int64)
}{
	RedisRateAllowN:      {shapeNumber, redisRateAllowN, redisRateBlocked},
	RedisRateAllowAtMost: {shapeNumber, redisRateAllowAtMost, redisRateBlocked},
	CountGet:             {shapeCount, countGet, countBlocked},
	CountSet:             {shapeCount, countSet, refused},
	CountAdd:             {shapeCount, countAdd, countBlocked},
	CountExpire:          {shapeCount, countExpire, refused},
	FlexibleConsume:      {shapeCount, flexibleConsume, countBlocked},
	ExpressHit:           {shapeCount, expressHit, countBlocked},
	ExpressHitReset:      {shapeCount, expressHitReset, countBlocked},
	ExpressCount:         {shapeCount, expressCount, countBlocked},
	ExpressCountZero:     {shapeCount, expressCountZero, countBlocked},
	FastifyHit:           {shapeCount, fastifyHit, countBlocked},
	FastifyHitTTL:        {shapeCount, fastifyHitTTL, countBlocked},
	FastifyHitBan:        {shapeCount, fastifyHitBan, countBlocked},
	FastifyRead:          {shapeCount, fastifyRead, countBlocked},
	UluleIncr:            {shapeCount, ululeIncr, countBlocked},
	UlulePeek:            {shapeCount, ululePeek, countBlocked},
	LimitsIncr:           {shapeCount, limitsIncr, countBlocked},
	FastapiHit:           {shapeCount, fastapiHit, fastapiBlocked},
	ZeroPeriod:           {shapeCount, zeroPeriod, refused},
	ZeroToken:            {shapeBucket, zeroToken, refused},
	SpringTake:           {shapeBucket, springTake, refused},
	NestHit:              {shapeThrottle, nestHit, nestBlocked},
	LimitsSlide:          {shapeSliding, limitsSlide, refused},
	LimitsLook:           {shapeSliding, limitsLook, limitsLookBlocked},
	RedisGCRA:            {shapeNumber, redisGCRA, redisGCRABlocked},
}

// scriptRun is one run of a script: the arguments, what is kept under its key, and
// what it answers.
type scriptRun struct {
	nowNs int64
	arg   *[MaxScriptArgs]float64

	live   bool // the key is there
	record scriptRecord
	effect scriptEffect

	status   Status // other than OK: nothing is kept
	admitted bool
	answer   [4]int64
}

// scriptEffect is what a run leaves behind.
type scriptEffect uint8

const (
	scriptLooked scriptEffect = iota
	scriptWrote
	scriptDeleted
)

// script carries out OpScript.
func (s *shard) script(c *cell, op *Op, d *Decision) bool {
	how := &scripts[op.Script.ID]
	run := scriptRun{nowNs: s.nowNs, arg: &op.Script.Args, live: c.live}
	if c.live {
		if c.e.kind() == uint8(Scripted) {
			run.record = readScriptRecord(c.e.state())
		}
		if run.record.shape != how.shape {
			d.Status = WrongType
			return false
		}
	}
	if leftMs, blocked := s.blockedMs(c); blocked {
		how.blocked(&run, leftMs)
	} else {
		how.run(&run)
	}
	if run.status != OK {
		d.Status = run.status
		return false
	}
	run.record.shape = how.shape
	changed := s.leave(c, &run, d)
	if d.Status != OK {
		return false
	}
	a := &run.answer
	*d = Decision{Allowed: oneIf(run.admitted), Remaining: a[0], RetryMs: a[1], ResetMs: a[2], Limit: a[3]}
	s.counts.count(Scripted, run.admitted)
	s.weigh(c, 1, d.verdict()) // scripts do not say how many units
	return changed
}

// leave makes the cell's entry what a run left behind, and reports whether it changed.
func (s *shard) leave(c *cell, run *scriptRun, d *Decision) bool {
	switch {
	case run.effect == scriptLooked, run.effect == scriptDeleted && !c.live:
		return false
	case run.effect == scriptDeleted:
		s.drop(c)
		return true
	case !s.ensure(c, uint8(Scripted), stateLens[Scripted]):
		d.Status = OutOfMemory
		return false
	}
	run.record.write(c.e.state())
	c.relink = true
	s.touched(c)
	return true
}

// blockedMs is how long an administrative block on the key still lasts, -1 without
// end, and whether there is one.
func (s *shard) blockedMs(c *cell) (leftMs int64, blocked bool) {
	untilNs, blocked := s.blockedUntil(c.hash, c.key)
	if !blocked {
		return 0, false
	}
	return s.spanMs(untilNs), true
}
