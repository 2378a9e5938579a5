package client

import (
	"time"

	"github.com/weir-project/weir/engine"
)

// Rate is an exact number of units per time: Rate{5, time.Minute}. Units is in 1..2^53, and Per is at most 366
// days.
type Rate struct {
	Units int64
	Per   time.Duration
}

// PerSecond is n units a second.
func PerSecond(n int64) Rate { return Rate{n, time.Second} }

// PerMinute is n units a minute.
func PerMinute(n int64) Rate { return Rate{n, time.Minute} }

// PerHour is n units an hour.
func PerHour(n int64) Rate { return Rate{n, time.Hour} }

// String formats the rate as commands accept it, like 5/1m.
func (r Rate) String() string { return decimal(r.Units) + "/" + duration(r.Per) }

// duration formats a duration as commands accept it.
func duration(d time.Duration) string { return engine.FormatDuration(int64(d)) }

// wholeMs formats a bound of a wait. It rounds down, because weir accepts no duration below a millisecond but 0.
func wholeMs(d time.Duration) string { return duration(d.Truncate(time.Millisecond)) }
