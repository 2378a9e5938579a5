package limits

import (
	"strconv"

	"github.com/weir-project/weir/engine"
)

// Reader reads limits. It keeps the last rate, window and steps, because clients repeat their limits and a comparison
// is cheaper than parsing. It is for one goroutine.
type Reader struct {
	// Stored accepts times below engine.MinGivenNs, which older versions accepted.
	Stored bool
	// Zone returns the time zone of a calendar window in a policy. Without it policies get no zone.
	Zone func(name []byte) (*engine.Zone, error)

	rates   memo[engine.Rate]
	windows memo[int64]
	steps   engine.Steps
}

// memo holds the last argument of one kind, such as a rate, and its parsed value.
type memo[T any] struct {
	text  [16]byte
	len   int
	value T
}

func (m *memo[T]) has(b []byte) bool { return m.len > 0 && string(b) == string(m.text[:m.len]) }

func (m *memo[T]) keep(b []byte, value T) {
	if len(b) <= len(m.text) {
		m.len, m.value = copy(m.text[:], b), value
	}
}

// form is the syntax of the limits of one algorithm.
type form struct {
	word      string
	algorithm engine.Algorithm
	fixed     int    // the least number of fixed arguments
	usage     string // the arguments, and an example
	options   Option
	end       string // the last fixed argument, if an error about a word after it names it
}

var forms = [...]form{
	{"TOKENBUCKET", engine.TokenBucket, 2, "rate burst, like TOKENBUCKET 10/s 100", MaxWait, ""},
	{"LEAKYBUCKET", engine.LeakyBucket, 2, "rate capacity, like LEAKYBUCKET 10/s 100", 0, "the capacity"},
	{"FIXED", engine.FixedWindow, 2, "window max [FIRST] [TZ zone] [NOTIFY threshold ...], like FIXED 1m 100",
		First | Zone, ""},
	{"SLIDING", engine.SlidingLog, 2, "window max, like SLIDING 1m 100", 0, "the max"},
	{"SLIDINGCOUNTER", engine.SlidingCounter, 2, "window max, like SLIDINGCOUNTER 1m 100", 0, "the max"},
	{"STRIKE", engine.Strike, 3, "window threshold penalty [threshold penalty ...] [ATTEMPTS] [EXTEND], where a " +
		"penalty may be DELAY and a time", Attempts | Extend, "a penalty, ATTEMPTS or EXTEND"},
}

// Algorithms lists the algorithms of policies and their arguments.
const Algorithms = "TOKENBUCKET rate burst, LEAKYBUCKET rate capacity, FIXED window max, SLIDING window max, " +
	"SLIDINGCOUNTER window max or STRIKE window threshold penalty ..."

func formOf(word []byte) *form {
	for i := range forms {
		if Is(word, forms[i].word) {
			return &forms[i]
		}
	}
	return nil
}

// Limit reads a limit of a policy: an algorithm and its arguments.
func (r *Reader) Limit(args [][]byte) (l engine.PolicyLimit, err error) {
	if len(args) == 0 {
		return l, Error("LIMIT needs an algorithm: " + Algorithms)
	}
	f := formOf(args[0])
	switch {
	case f == nil:
		return l, Bad("LIMIT", "must be "+Algorithms, args[0])
	case len(args) <= f.fixed:
		return l, Error("a limit is written " + f.word + " " + f.usage)
	}
	l.Limit.Algorithm = f.algorithm
	rest, err := r.Args(&l.Limit, args[1:])
	if err == nil {
		rest, err = notify(&l, rest)
	}
	switch {
	case err != nil:
		return l, err
	case len(rest) > 0 && f.end != "" && !IsOption(rest[0], f.options):
		return l, Bad("limit", "must end with "+f.end, rest[0])
	}
	zone := []byte("UTC")
	_, err = Options(rest, f.options, func(bit Option, value []byte) (err error) {
		if bit == MaxWait {
			l.WaitNs, err = duration("MAXWAIT", value, r.leastNs(), "0 or ")
			return err
		}
		if bit == Zone {
			zone = value
		}
		return Apply(&l.Limit, bit)
	})
	if err == nil && r.Zone != nil && l.Limit.Mode.Calendar() {
		l.Zone, err = r.Zone(zone)
	}
	return l, err
}

// Args reads the fixed arguments of a limit of l.Algorithm: a rate or a window and a size, or a window and steps. The
// caller has checked that there are two. Args returns the arguments that follow.
func (r *Reader) Args(l *engine.Limit, args [][]byte) (rest [][]byte, err error) {
	size := "max"
	switch l.Algorithm {
	case engine.TokenBucket, engine.LeakyBucket:
		if size = "burst"; l.Algorithm == engine.LeakyBucket {
			size = "capacity"
		}
		l.Rate, err = r.rate(args[0])
	case engine.FixedWindow:
		if l.Mode = WindowMode(args[0]); l.Mode != engine.Aligned {
			break
		}
		if l.WindowNs, err = r.window(args[0]); err != nil {
			err = OrWords(err, "DAY, WEEK, MONTH, YEAR or FOREVER", "window", args[0])
		}
	default:
		l.WindowNs, err = r.window(args[0])
	}
	switch {
	case err != nil:
		return nil, err
	case l.Algorithm == engine.Strike:
		return r.readSteps(l, args[1:])
	}
	least, most := l.Algorithm.Sizes()
	l.Max, err = Units(size, args[1], least, most)
	return args[2:], err
}

// Slots reads the fixed arguments of slots: how many are taken at most, and for how long without a renewal.
func Slots(args [][]byte) (most, ttlNs int64, err error) {
	if most, err = Units("max", args[0], 1, engine.MaxUnits); err == nil {
		ttlNs, err = Duration("ttl", args[1])
	}
	return most, ttlNs, err
}

func (r *Reader) leastNs() int64 {
	if r.Stored {
		return 1
	}
	return engine.MinGivenNs
}

func (r *Reader) rate(b []byte) (engine.Rate, error) {
	if r.rates.has(b) {
		return r.rates.value, nil
	}
	rate, err := Rate(b)
	if err == nil {
		r.rates.keep(b, rate)
	}
	return rate, err
}

// window reads the length of a window.
func (r *Reader) window(b []byte) (int64, error) {
	if r.windows.has(b) {
		return r.windows.value, nil
	}
	ns, err := duration("window", b, r.leastNs(), "")
	if err == nil {
		r.windows.keep(b, ns)
	}
	return ns, err
}

// WindowMode parses a calendar window or FOREVER. It returns Aligned for any other text.
func WindowMode(b []byte) engine.WindowMode {
	for mode := engine.Day; mode <= engine.Forever; mode++ {
		if Is(b, WindowWords[mode]) {
			return mode
		}
	}
	return engine.Aligned
}

// WindowWords are the words for the calendar windows and FOREVER.
var WindowWords = [...]string{
	engine.Day: "DAY", engine.Week: "WEEK", engine.Month: "MONTH", engine.Year: "YEAR", engine.Forever: "FOREVER",
}

// strikeOptions are the options that may follow the steps of a strike limit.
const strikeOptions = Attempts | Extend | Cost | From | ID

// readSteps parses pairs of threshold and penalty, or DELAY and its time, up to the first option.
func (r *Reader) readSteps(l *engine.Limit, args [][]byte) (rest [][]byte, err error) {
	var steps [engine.MaxSteps]engine.Step
	n, last := 0, int64(0)
	for len(args) > 0 && (n == 0 || !IsOption(args[0], strikeOptions)) {
		if n == len(steps) {
			return nil, Error("a strike limit has at most " + strconv.Itoa(engine.MaxSteps) + " steps")
		}
		step := &steps[n]
		if step.Threshold, err = Units("threshold", args[0], 1, engine.MaxLogUnits); err != nil {
			return nil, err
		}
		if step.Threshold <= last {
			return nil, Bad("threshold", "must be above the one before it", args[0])
		}
		args = args[1:]
		if step.Delay = len(args) > 0 && Is(args[0], "DELAY"); step.Delay {
			args = args[1:]
		}
		if len(args) == 0 {
			return nil, Error("threshold " + strconv.FormatInt(step.Threshold, 10) +
				" needs a penalty, like 30s, or DELAY and a time")
		}
		if step.PenaltyNs, err = duration("penalty", args[0], r.leastNs(), ""); err != nil {
			return nil, err
		}
		last = step.Threshold
		args, n = args[1:], n+1
	}
	l.Max, l.Steps = last, r.pack(steps[:n])
	return args, nil
}

// pack packs steps, or returns the last result if they are the same.
func (r *Reader) pack(steps []engine.Step) engine.Steps {
	same := r.steps.Len() == len(steps)
	for i := 0; same && i < len(steps); i++ {
		same = r.steps.At(i) == steps[i]
	}
	if !same {
		r.steps = engine.MakeSteps(steps)
	}
	return r.steps
}
