package client

import (
	"strconv"
	"time"

	"github.com/weir-project/weir/engine"
)

// Rate is units per time, exact: Rate{5, time.Minute}. Units is in 1..2^53, Per up to
// 366 days.
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

// String writes the rate as commands take it, like 5/1m.
func (r Rate) String() string { return strconv.FormatInt(r.Units, 10) + "/" + duration(r.Per) }

// duration writes a duration as commands take it.
func duration(d time.Duration) string { return engine.FormatDuration(int64(d)) }

// lowest is the rate in lowest terms, as the engine wants it.
func (r Rate) lowest() engine.Rate {
	a, b := r.Units, int64(r.Per)
	for b != 0 {
		a, b = b, a%b
	}
	return engine.Rate{Units: r.Units / a, PerNs: int64(r.Per) / a}
}
