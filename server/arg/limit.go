package arg

import (
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
)

// WindowMode parses a calendar window or FOREVER. It returns Aligned for any other text.
func WindowMode(b []byte) engine.WindowMode {
	for mode := engine.Day; mode <= engine.Forever; mode++ {
		if Is(b, WindowWords[mode]) {
			return mode
		}
	}
	return engine.Aligned
}

// WindowWords are the words of commands for the calendar windows and FOREVER.
var WindowWords = [...]string{
	engine.Day: "DAY", engine.Week: "WEEK", engine.Month: "MONTH", engine.Year: "YEAR", engine.Forever: "FOREVER",
}

// Steps parses pairs of threshold and penalty, or DELAY and its time, up to the first option.
func Steps(steps *[engine.MaxSteps]engine.Step, args [][]byte) (n int, rest [][]byte, err error) {
	last := int64(0)
	for len(args) > 0 && (n == 0 || !isStrikeOption(args[0])) {
		if n == len(steps) {
			return 0, nil, resp.Error("ERR a strike limit has at most " + strconv.Itoa(engine.MaxSteps) + " steps")
		}
		step := &steps[n]
		if step.Threshold, err = Units("threshold", args[0], 1, engine.MaxLogUnits); err != nil {
			return 0, nil, err
		}
		if step.Threshold <= last {
			return 0, nil, Bad("threshold", "must be above the one before it", args[0])
		}
		args = args[1:]
		if step.Delay = len(args) > 0 && Is(args[0], "DELAY"); step.Delay {
			args = args[1:]
		}
		if len(args) == 0 {
			return 0, nil, resp.Error("ERR threshold " + strconv.FormatInt(step.Threshold, 10) +
				" needs a penalty, like 30s, or DELAY and a time")
		}
		if step.PenaltyNs, err = Span("penalty", args[0]); err != nil {
			return 0, nil, err
		}
		last = step.Threshold
		args, n = args[1:], n+1
	}
	return n, args, nil
}

func isStrikeOption(b []byte) bool { return IsOption(b, Attempts|Extend|Cost|From|ID) }
