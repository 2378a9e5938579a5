package policytext

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/timezone"
)

// The functions below define the syntax of policy terms in RL.POLICY and in policy files.

// termWords are the words that end the arguments of a LIMIT.
var termWords = []string{"LIMIT", "SHADOW", "DISABLED", "RETRYAFTER", "RESERVED", "LAYOUT", "REPORT", "KEEP", "RESET",
	"OWNER", "IF", "UNLIMITED", "TTL"}

func isTerm(b []byte) bool {
	for _, word := range termWords {
		if arg.Is(b, word) {
			return true
		}
	}
	return false
}

// limitArgs parses one limit: an algorithm and its arguments, without the word LIMIT.
func limitArgs(args [][]byte) (l engine.PolicyLimit, err error) {
	if len(args) == 0 {
		return l, resp.Error("ERR LIMIT needs an algorithm: " + algorithmWords)
	}
	switch algo, rest := args[0], args[1:]; {
	case arg.Is(algo, "TOKENBUCKET"):
		return bucketLimit(engine.TokenBucket, "burst", 1, rest)
	case arg.Is(algo, "LEAKYBUCKET"):
		return bucketLimit(engine.LeakyBucket, "capacity", 0, rest)
	case arg.Is(algo, "FIXED"):
		return fixedLimit(rest)
	case arg.Is(algo, "SLIDING"):
		return windowLimit(engine.SlidingLog, engine.MaxLogUnits, rest)
	case arg.Is(algo, "SLIDINGCOUNTER"):
		return windowLimit(engine.SlidingCounter, engine.MaxUnits, rest)
	case arg.Is(algo, "STRIKE"):
		return strikeLimit(rest)
	}
	return l, arg.Bad("LIMIT", "must be "+algorithmWords, args[0])
}

const algorithmWords = "TOKENBUCKET rate burst, LEAKYBUCKET rate capacity, FIXED window max, SLIDING window max, " +
	"SLIDINGCOUNTER window max or STRIKE window threshold penalty ..."

func needTwo(form, example string, args [][]byte) error {
	if len(args) < 2 {
		return resp.Error("ERR a limit is written " + form + ", like " + example)
	}
	return nil
}

func bucketLimit(a engine.Algorithm, size string, least int64, args [][]byte) (l engine.PolicyLimit, err error) {
	word := strings.ToUpper(a.String())
	if err = needTwo(word+" rate "+size, word+" 10/s 100", args); err != nil {
		return l, err
	}
	l.Limit.Algorithm = a
	if l.Limit.Rate, err = arg.Rate(args[0]); err != nil {
		return l, err
	}
	if l.Limit.Max, err = arg.Units(size, args[1], least, engine.MaxUnits); err != nil {
		return l, err
	}
	switch rest := args[2:]; {
	case len(rest) == 0:
	case a == engine.TokenBucket && len(rest) == 2 && arg.Is(rest[0], "MAXWAIT"):
		l.WaitNs, err = arg.Duration("MAXWAIT", rest[1])
	case a == engine.TokenBucket:
		err = arg.Bad("option", "must be MAXWAIT duration", rest[0])
	default:
		err = arg.Bad("limit", "must end with the "+size, rest[0])
	}
	return l, err
}

func windowLimit(a engine.Algorithm, most int64, args [][]byte) (l engine.PolicyLimit, err error) {
	word := strings.ToUpper(a.String())
	if err = needTwo(word+" window max", word+" 1m 100", args); err != nil {
		return l, err
	}
	l.Limit.Algorithm = a
	if l.Limit.WindowNs, err = arg.Span("window", args[0]); err != nil {
		return l, err
	}
	if l.Limit.Max, err = arg.Units("max", args[1], 1, most); err == nil && len(args) > 2 {
		err = arg.Bad("limit", "must end with the max", args[2])
	}
	return l, err
}

func strikeLimit(args [][]byte) (l engine.PolicyLimit, err error) {
	if len(args) < 3 {
		return l, resp.Error("ERR a limit is written STRIKE window threshold penalty [threshold penalty ...] " +
			"[ATTEMPTS] [EXTEND], where a penalty may be DELAY and a time")
	}
	l.Limit.Algorithm = engine.Strike
	if l.Limit.WindowNs, err = arg.Span("window", args[0]); err != nil {
		return l, err
	}
	var steps [engine.MaxSteps]engine.Step
	n, rest, err := arg.Steps(&steps, args[1:])
	if err != nil {
		return l, err
	}
	for _, word := range rest {
		mode := strikeMode(word)
		if mode == 0 || l.Limit.Strikes&mode != 0 {
			return l, arg.Bad("limit", "must end with a penalty, ATTEMPTS or EXTEND", word)
		}
		l.Limit.Strikes |= mode
	}
	l.Limit.Max, l.Limit.Steps = steps[n-1].Threshold, engine.MakeSteps(steps[:n])
	return l, nil
}

// strikeMode returns the mode of a word of a strike limit, or 0.
func strikeMode(word []byte) engine.StrikeMode {
	switch {
	case arg.Is(word, "ATTEMPTS"):
		return engine.Attempts
	case arg.Is(word, "EXTEND"):
		return engine.Extend
	}
	return 0
}

func fixedLimit(args [][]byte) (l engine.PolicyLimit, err error) {
	if err = needTwo("FIXED window max [FIRST] [TZ zone]", "FIXED 1m 100", args); err != nil {
		return l, err
	}
	l.Limit.Algorithm, l.Limit.Mode = engine.FixedWindow, arg.WindowMode(args[0])
	if l.Limit.Mode == engine.Aligned {
		if l.Limit.WindowNs, err = arg.Span("window", args[0]); err != nil {
			return l, arg.OrWords(err, "DAY, WEEK, MONTH, YEAR or FOREVER", "window", args[0])
		}
	}
	if l.Limit.Max, err = arg.Units("max", args[1], 1, engine.MaxUnits); err != nil {
		return l, err
	}
	calendar, zone := l.Limit.Mode >= engine.Day && l.Limit.Mode <= engine.Year, []byte("UTC")
	switch rest := args[2:]; {
	case len(rest) == 0:
	case len(rest) == 1 && arg.Is(rest[0], "FIRST") && l.Limit.Mode == engine.Aligned:
		l.Limit.Mode = engine.FromFirst
	case len(rest) == 2 && arg.Is(rest[0], "TZ") && calendar:
		zone = rest[1]
	case arg.Is(rest[0], "TZ") && !calendar:
		return l, resp.Error("ERR TZ goes with a window of DAY, WEEK, MONTH or YEAR only")
	case arg.Is(rest[0], "FIRST") && l.Limit.Mode != engine.Aligned:
		return l, resp.Error("ERR FIRST goes with a window of a duration only, like 1m")
	default:
		return l, arg.Bad("option", "must be FIRST or TZ zone", rest[0])
	}
	if calendar {
		l.Zone, err = timezone.Tables.Get(zone)
	}
	return l, err
}

// Limit formats a limit in the syntax of limitArgs.
func Limit(l *engine.PolicyLimit) string {
	text := strings.ToUpper(l.Limit.Algorithm.String()) + " " + Rule(l.Limit)
	if l.WaitNs > 0 {
		text += " MAXWAIT " + engine.FormatDuration(l.WaitNs)
	}
	if l.Zone != nil && l.Zone.Name != "UTC" {
		text += " TZ " + l.Zone.Name
	}
	return text
}

// reservedArg parses the part of a policy that is reserved for high priority, like 20% or 12.5%, in thousandths.
func reservedArg(b []byte) (int64, error) {
	bad := arg.Bad("RESERVED", "must be from 0.1% to 99.9%, like 20%", b)
	number, percent := strings.CutSuffix(string(b), "%")
	whole, tenths, _ := strings.Cut(number, ".")
	n, err := strconv.ParseUint(whole, 10, 8)
	if !percent || err != nil || len(tenths) > 1 || strings.HasSuffix(number, ".") {
		return 0, bad
	}
	n *= 10
	if tenths != "" {
		tenth, err := strconv.ParseUint(tenths, 10, 8)
		if err != nil {
			return 0, bad
		}
		n += tenth
	}
	if n < 1 || n > engine.MaxReserved {
		return 0, bad
	}
	return int64(n), nil
}

// Reserved formats thousandths in the syntax of reservedArg.
func Reserved(n int64) string {
	if n%10 == 0 {
		return fmt.Sprintf("%d%%", n/10)
	}
	return fmt.Sprintf("%d.%d%%", n/10, n%10)
}

// Report formats a value in the syntax of reportArg, in lower case.
func Report(ns int64) string {
	if ns == 0 {
		return "burst"
	}
	return engine.FormatDuration(ns)
}

// Limits formats each limit as Limit does.
func Limits(limits []engine.PolicyLimit) []string {
	texts := make([]string, len(limits))
	for i := range limits {
		texts[i] = Limit(&limits[i])
	}
	return texts
}
