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
)

// Further scripts have numbers of their own, which stand in the file of each: strings have
// 27 to 36 (script_text.go), hashes 37 to 44 (script_hash.go), the sliding log 45 to 48
// (script_log.go). NumScripts is above all that were given out.
const NumScripts ScriptID = 49

// MaxScriptArgs is the most numbers any script takes.
const MaxScriptArgs = 6

// Script is the argument of OpScript. Numbers are doubles, as in the Lua of Redis.
type Script struct {
	ID     ScriptID
	Args   [MaxScriptArgs]float64 // finite; what each means depends on the script
	Values [2][]byte              // as many as ID.TextsOf says, of up to MaxValueBytes; not kept
}

// Sound reports whether the script is one that this engine knows, with numbers and byte
// strings it can be given.
func (s *Script) Sound() bool {
	if len(s.Values[0]) > MaxValueBytes || len(s.Values[1]) > MaxValueBytes {
		return false
	}
	for _, a := range s.Args {
		if math.IsNaN(a) || math.IsInf(a, 0) {
			return false
		}
	}
	return s.ID < NumScripts && scripts[s.ID].run != nil && (s.ID != SlidingSet || soundSlidingSet(&s.Args))
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
	CountGet:             {shapeString, countGet, valueBlocked},
	CountSet:             {shapeString, countSet, refused},
	CountAdd:             {shapeCount, countAdd, countBlocked},
	CountExpire:          {shapeString, countExpire, refused},
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
	TextSet:              {shapeString, textSet, textBlocked},
	TextLook:             {shapeAny, (*scriptRun).answersValue, valueBlocked},
	TextTake:             {shapeString, textTake, textBlocked},
	TextTouch:            {shapeString, textTouch, textBlocked},
	TextExpire:           {shapeString, textExpire, textBlocked},
	TextAppend:           {shapeString, textAppend, textBlocked},
	TextSwap:             {shapeString, textSwap, textBlocked},
	TextDrop:             {shapeString, textDrop, textBlocked},
	TextAdd:              {shapeString, textSet, textBlocked},
	TextSwapLive:         {shapeString, textSwap, textBlocked},
	GatewayTake:          {shapeGateway, gatewayTake, gatewayBlocked},
	MarketTake:           {shapeMarket, marketTake, marketBlocked},
	SlidingSet:           {shapeLog, slidingSet, slidingSetBlocked},
}

// scriptRun is one run of a script: the arguments, what is kept under its key, and
// what it answers.
type scriptRun struct {
	nowNs  int64
	arg    *[MaxScriptArgs]float64
	script *Script
	slab   *slab // to read the record's log

	live   bool // the key is there
	record scriptRecord
	effect scriptEffect
	digits [maxIntegerBytes]byte // room for a count in digits

	kept     []byte // the bytes, of a record that is text
	fresh    []byte // the bytes that the record gets, if rewrites
	rewrites bool

	dropMs, addMs int64 // shapeLog, once it is to be kept: forgets up to here, and adds this if admitted

	status   Status // other than OK: nothing is kept
	admitted bool
	answer   [4]int64
	said     string // the byte string it answers
}

// keptBytes is the longest copy of a value whose memory a shard keeps for the next.
const keptBytes = 16 << 10

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
	run := scriptRun{nowNs: s.nowNs, arg: &op.Script.Args, script: op.Script, slab: &s.slab, live: c.live}
	if c.live {
		if c.e.kind() == uint8(Scripted) {
			run.record = readScriptRecord(c.e.state())
		}
		if d.Status = how.shape.accepts(run.record.shape); d.Status != OK {
			return false
		}
		if run.record.shape == shapeText {
			s.kept = readText(c.e.state()).appendTo(s.kept[:0], &s.slab)
			run.kept = s.kept
		}
		if how.shape == shapeAny && !shapeString.has(run.record.shape) {
			run.live = false
		}
	}
	if leftMs, blocked := s.blockedMs(c, op); blocked {
		how.blocked(&run, leftMs)
	} else {
		how.run(&run)
	}
	if cap(s.kept) > keptBytes {
		s.kept = nil
	}
	if run.status != OK {
		d.Status = run.status
		return false
	}
	if how.shape.single() {
		run.record.shape = how.shape
	}
	changed := s.leave(c, &run, d)
	if d.Status != OK {
		return false
	}
	a := &run.answer
	*d = Decision{Allowed: oneIf(run.admitted), Remaining: a[0], RetryMs: a[1], ResetMs: a[2], Limit: a[3], Value: run.said}
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
	case !s.keepRecord(c, run):
		d.Status = OutOfMemory
		return false
	}
	c.relink = true
	s.touched(c)
	return true
}

// keepRecord makes a run's record that of the cell's entry, and sees to its bytes.
func (s *shard) keepRecord(c *cell, run *scriptRun) bool {
	var before, now text
	if c.live && isText(c.e.state()) {
		before = readText(c.e.state())
		now = before
	}
	switch inPlace := before.len == len(run.fresh); {
	case !run.rewrites && run.record.shape != shapeText:
		now = text{}
	case run.rewrites && inPlace:
		before.overwrite(run.fresh, &s.slab)
	case run.rewrites:
		var ok bool
		if now, ok = s.newText(run.fresh, func(n int) bool { return s.makeRoom(n, c.r) }); !ok {
			return false
		}
	}
	if !s.makeRoom(run.logGrowth(), c.r) || !s.ensure(c, uint8(Scripted), stateLens[Scripted]) {
		now.free(&s.slab)
		return false
	}
	if before.head != now.head {
		before.free(&s.slab)
	}
	if run.record.shape == shapeLog {
		run.keepLog()
	}
	run.record.write(c.e.state())
	if run.record.shape == shapeText {
		writeText(c.e.state(), now)
	}
	return true
}

// blockedMs is how long an administrative block on the key still lasts, -1 without
// end, and whether there is one.
func (s *shard) blockedMs(c *cell, op *Op) (leftMs int64, blocked bool) {
	untilNs, blocked := s.blockedUntil(c.hash, c.key, op)
	if !blocked {
		return 0, false
	}
	return s.spanMs(untilNs), true
}
