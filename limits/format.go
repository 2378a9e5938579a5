package limits

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
)

// Rule formats a limit in the syntax of its decision command, without the algorithm.
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
	return fmt.Sprintf("%s %d", WindowWords[l.Mode], l.Max)
}

// Text formats a limit of a policy as Reader.Limit reads it.
func Text(l *engine.PolicyLimit) string {
	text := strings.ToUpper(l.Limit.Algorithm.String()) + " " + Rule(l.Limit)
	if l.WaitNs > 0 {
		text += " MAXWAIT " + engine.FormatDuration(l.WaitNs)
	}
	if l.Zone != nil && l.Zone.Name != "UTC" {
		text += " TZ " + l.Zone.Name
	}
	if l.Notify != "" {
		text += " NOTIFY " + NotifyText(l.Notify)
	}
	return text
}

// Texts formats each limit as Text does.
func Texts(limits []engine.PolicyLimit) []string {
	texts := make([]string, len(limits))
	for i := range limits {
		texts[i] = Text(&limits[i])
	}
	return texts
}

// Window returns the time in which all of a limit becomes available again, at most engine.MaxWindowNs, or 0 if it never
// does. A calendar window has its longest length.
func Window(l *engine.Limit) time.Duration {
	switch l.Algorithm {
	case engine.TokenBucket, engine.LeakyBucket:
		perUnit := float64(l.Rate.PerNs) / float64(l.Rate.Units)
		return time.Duration(min(perUnit*float64(l.Max), float64(engine.MaxWindowNs)))
	case engine.FixedWindow:
		if l.Mode >= engine.Day {
			return calendarDays[l.Mode] * 24 * time.Hour
		}
	}
	return time.Duration(l.WindowNs)
}

// calendarDays is the longest length of each calendar window in days.
var calendarDays = [...]time.Duration{
	engine.Day: 1, engine.Week: 7, engine.Month: 31, engine.Year: 366, engine.Forever: 0,
}
