package script

import (
	"math"
	"slices"

	"github.com/weir-project/weir/engine/internal/arena"
)

// ID is the number of a script of a published limiter library that OpScript runs natively. The script has the same
// effect on its keys as in a Redis whose clock is limiter time. Log entries of a cluster contain the number, so numbers
// are never reused.
type ID uint8

// These are the scripts. The file named after a dialect describes its scripts.
const (
	None                 ID = iota
	RedisRateAllowN         // burst, rate, period s, cost
	RedisRateAllowAtMost    // burst, rate, period s, cost
	CountGet                // GET and PTTL
	CountSet                // number, ms
	CountAdd                // by
	CountExpire             // ms
	FlexibleConsume         // points, duration s
	ExpressHit              // window ms
	ExpressHitReset         // reset, window ms
	ExpressCount            // reset, window ms
	ExpressCountZero        // reset, window ms
	FastifyHit              // window ms, max, go on, back off
	FastifyHitTTL           // window ms, max, go on, back off
	FastifyHitBan           // window ms, max, ban, go on
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

// NumIDs is above all assigned numbers. The scripts on strings have the numbers 27 to 36 (text.go), those on hashes 37
// to 44 (hash.go), those on a sliding log 45 to 48 (slidingset.go), those on times of hits 49 to 52 (hits.go), those of
// @upstash/ratelimit 53 to 56 (upstash.go), and those on windows in a hash 57 to 58 (window.go). 59 is in hash.go.
const NumIDs ID = 60

// MaxArgs is the largest number of numeric arguments of a script.
const MaxArgs = 6

// Call is the argument of OpScript. Numbers are doubles, as in the Lua of Redis.
type Call struct {
	ID     ID
	Args   [MaxArgs]float64 // finite; their meanings depend on the script
	Values [2][]byte        // as many as ID.TextsOf returns, of up to MaxValueBytes; not kept
}

// Valid reports whether the engine knows the script, and whether its numbers and byte strings are valid.
func (s *Call) Valid() bool {
	if len(s.Values[0]) > MaxValueBytes || len(s.Values[1]) > MaxValueBytes {
		return false
	}
	for _, a := range s.Args {
		if math.IsNaN(a) || math.IsInf(a, 0) {
			return false
		}
	}
	return s.ID < NumIDs && scripts[s.ID].run != nil && (s.ID != SlidingSet || validSlidingSet(&s.Args))
}

// scripts lists for each script the shape of its value, and its functions.
var scripts = [NumIDs]struct {
	shape shapes
	run   func(*Run)
	// blocked answers about a key that stays blocked for leftMs more milliseconds, -1 for no end. It changes nothing.
	blocked func(r *Run, leftMs int64)
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
	TextLook:             {shapeAny, (*Run).answersValue, valueBlocked},
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
	MovingTake:           {shapeList, movingTake, refused},
	MovingLook:           {shapeList, movingLook, movingBlocked},
	MovingCount:          {shapeList, movingCount, movingBlocked},
	AsyncTake:            {shapeSet, asyncTake, asyncBlocked},
	UpstashSlide:         {shapeWindows, upstashSlide, upstashSlideBlocked},
	UpstashSlideLook:     {shapeWindows, upstashSlideLook, countBlocked},
	UpstashTake:          {shapeUpstash, upstashTake, upstashTakeBlocked},
	UpstashLook:          {shapeUpstash, upstashLook, upstashLookBlocked},
	DurationTake:         {shapeDuration, durationTake, durationBlocked},
	DurationLook:         {shapeDuration, durationLook, durationBlocked},
	TraefikTake:          {shapeTraefik, traefikTake, traefikBlocked},
}

// Run is one run of a script: the arguments, the state under its key, and the answer.
type Run struct {
	nowNs  int64
	arg    *[MaxArgs]float64
	script *Call
	slab   *arena.Slab // to read the record's log

	live   bool // the key exists
	record Record
	Effect Effect
	digits [maxIntegerBytes]byte // memory for the digits of a count

	kept     []byte // the byte string under the key before the run
	fresh    []byte // the new byte string, if rewrites is set
	rewrites bool   // the run writes another byte string

	before, now text // references to the old and the new byte string

	dropMs, addMs int64 // shapeLog: Store drops times up to dropMs, and adds addMs if the run admits

	status   Refusal // unless Accepted, nothing is stored
	Admitted bool
	Answer   [4]int64
	Said     string // the byte string in the answer
}

// keptBytes is the size up to which the memory of a copied value is kept for the next run.
const keptBytes = 16 << 10

// Effect is the effect of a run on its key.
type Effect uint8

const (
	Looked  Effect = iota // the key stays as it is
	wrote                 // the key has a new value or expiry
	Deleted               // the key is removed
)

// Refusal is the reason why a script did not run.
type Refusal uint8

// These are the refusals.
const (
	Accepted     Refusal = iota
	WrongType            // the key has a value that the script does not accept
	NotInteger           // the key has a byte string that is not a whole number
	Overflow             // a count would exceed the integers that doubles represent exactly
	KeyBlocked           // a block denies the script, whose answer cannot express a denial
	ValueTooLong         // the value would exceed the limit of its length
)

// NewRun prepares a run of a script at a time. The run uses buffer for a copy of the value.
func NewRun(nowNs int64, of *Call, s *arena.Slab, buffer []byte) Run {
	return Run{nowNs: nowNs, arg: &of.Args, script: of, slab: s, kept: buffer}
}

// Open gives the run the state of its key. state is nil for a limiter of another kind. It returns the reason why the
// script cannot run on that state.
func (r *Run) Open(state []byte) Refusal {
	shape := scripts[r.script.ID].shape
	r.live = true
	if state != nil {
		r.record = ReadRecord(state)
	}
	if no := shape.accepts(r.record.shape); no != Accepted {
		return no
	}
	if r.record.shape.isBytes() {
		x := readText(state)
		r.kept = x.appendTo(slices.Grow(r.kept[:0], x.len+hitBytes), r.slab)
	}
	if shape == shapeAny && !shapeString.has(r.record.shape) {
		r.live = false
	}
	return Accepted
}

// Do runs the script and returns why it was refused.
func (r *Run) Do() Refusal {
	scripts[r.script.ID].run(r)
	return r.finish()
}

// DoBlocked answers about a key that stays blocked for leftMs milliseconds, -1 for no end.
func (r *Run) DoBlocked(leftMs int64) Refusal {
	scripts[r.script.ID].blocked(r, leftMs)
	return r.finish()
}

func (r *Run) finish() Refusal {
	if shape := scripts[r.script.ID].shape; r.status == Accepted && shape.single() {
		r.record.shape = shape
	}
	return r.status
}

// Buffer returns the memory that the next run can use.
func (r *Run) Buffer() []byte {
	if cap(r.kept) > keptBytes {
		return nil
	}
	return r.kept
}

// Prepare allocates the memory of the run's result, if room admits each part of it. state is the state of the
// existing entry, or nil.
func (r *Run) Prepare(state []byte, room func(n int) bool) (ok bool) {
	if state != nil && isText(state) {
		r.before = readText(state)
		r.now = r.before
	}
	switch inPlace := r.before.len == len(r.fresh); {
	case !r.rewrites && !r.record.shape.isBytes():
		r.now = text{}
	case r.rewrites && inPlace:
		r.before.overwrite(r.fresh, r.slab)
	case r.rewrites:
		if r.now, ok = newText(r.fresh, r.slab, room); !ok {
			return false
		}
	}
	return room(r.logGrowth())
}

// Discard frees the memory that Prepare allocated, if the entry itself cannot be stored.
func (r *Run) Discard() { r.slab.FreeChain(r.now.head) }

// Store writes the result of the run to a state.
func (r *Run) Store(state []byte) {
	if r.before.head != r.now.head {
		r.slab.FreeChain(r.before.head)
	}
	if r.record.shape == shapeLog {
		r.keepLog()
	}
	r.record.write(state)
	if r.record.shape.isBytes() {
		writeText(state, r.now)
	}
}
