package policytext

import (
	"fmt"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
)

// Rule formats a limit in the syntax of its decision command.
func Rule(l engine.Limit) string {
	switch l.Algorithm {
	case engine.TokenBucket, engine.LeakyBucket:
		return fmt.Sprintf("%s %d", l.Rate, l.Max)
	case engine.FixedWindow:
		return fixedText(l)
	case engine.SlidingLog, engine.SlidingCounter:
		return fmt.Sprintf("%s %d", engine.FormatDuration(l.WindowNs), l.Max)
	case engine.Concurrency:
		return fmt.Sprint(l.Max)
	case engine.Strike:
		return strikeText(l)
	}
	return ""
}

func strikeText(l engine.Limit) string {
	text := engine.FormatDuration(l.WindowNs)
	for i := range l.Steps.Len() {
		step, delay := l.Steps.At(i), ""
		if step.Delay {
			delay = "DELAY "
		}
		text += fmt.Sprintf(" %d %s%s", step.Threshold, delay, engine.FormatDuration(step.PenaltyNs))
	}
	if l.Strikes&engine.Attempts != 0 {
		text += " ATTEMPTS"
	}
	if l.Strikes&engine.Extend != 0 {
		text += " EXTEND"
	}
	return text
}

func fixedText(l engine.Limit) string {
	switch l.Mode {
	case engine.Aligned:
		return fmt.Sprintf("%s %d", engine.FormatDuration(l.WindowNs), l.Max)
	case engine.FromFirst:
		return fmt.Sprintf("%s %d FIRST", engine.FormatDuration(l.WindowNs), l.Max)
	}
	return fmt.Sprintf("%s %d", arg.WindowWords[l.Mode], l.Max)
}
