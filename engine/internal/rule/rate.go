package rule

import (
	"errors"
	"strconv"

	"github.com/weir-project/weir/engine/internal/arith"
)

// The errors of the parsers of this file. The texts name the accepted values. The caller names the argument and
// quotes its value.
var (
	ErrRate     = errors.New("must be like 10/s, 5/m or 1/6s (per ms, s, m, h, d or w; a bare 10 is 10/s)")
	ErrRateFast = errors.New("must be at most 9007199254740992 units a nanosecond")
	ErrRateSlow = errors.New("must be at least 1 unit in 366 days")
	ErrDuration = errors.New("must be like 30s, 500ms, 1m, 1h or 1d (in ms, s, m, h, d or w; a bare 60 is 60s)")
	ErrTooLong  = errors.New("must be at most 366 days")
)

// ParseRate reads a rate: units, an optional slash and a period. Examples are "10/s", "5/m", "1000/h", "1/6s",
// "3/500ms" and "0.5/s". "10" is 10 per second. The units may have up to nine decimals. The result is the exact
// fraction.
func ParseRate(b []byte) (Rate, error) {
	units, perNs := b, int64(1e9)
	for i, c := range b {
		if c == '/' {
			var err error
			if perNs, err = parsePer(b[i+1:]); err != nil {
				return Rate{}, err
			}
			units = b[:i]
			break
		}
	}
	n, scale, ok := parseDecimal(units)
	if !ok || n == 0 {
		return Rate{}, ErrRate
	}
	return MakeRate(n, arith.Mul(uint64(perNs), uint64(scale)))
}

// MakeRate returns units per the given number of nanoseconds, in lowest terms.
func MakeRate(units int64, perNs arith.Uint128) (Rate, error) {
	// The greatest common divisor is at most units, so one wide division brings
	// the pair into 64 bits.
	rest := perNs.Mod(uint64(units))
	g := gcd(uint64(units), rest)
	per, big := perNs.Div(g)
	if big || per > uint64(MaxWindowNs) {
		return Rate{}, ErrRateSlow
	}
	r := Rate{Units: units / int64(g), PerNs: int64(per)}
	if r.Units > MaxUnits {
		return Rate{}, ErrRateFast
	}
	return r, nil
}

// String formats the rate as ParseRate reads it. The period is a second if that gives a whole number of units.
func (r Rate) String() string {
	if perSec := arith.Mul(uint64(r.Units), 1e9); r.PerNs > 0 && perSec.Mod(uint64(r.PerNs)) == 0 {
		if n, big := perSec.Div(uint64(r.PerNs)); !big && n <= MaxUnits {
			return strconv.FormatUint(n, 10) + "/s"
		}
	}
	return strconv.FormatInt(r.Units, 10) + "/" + FormatDuration(r.PerNs)
}

// parsePer parses the part after the slash of a rate: a unit ("m"), or a duration.
func parsePer(b []byte) (int64, error) {
	if len(b) == 0 {
		return 0, ErrRate
	}
	if unit, n := unitNs(b); n == len(b) {
		return unit, nil
	}
	ns, err := ParseDuration(b)
	if err == ErrDuration || err == nil && ns == 0 {
		return 0, ErrRate
	}
	return ns, err
}

// ParseDuration reads a whole number and a unit (ns, us, ms, s, m, h, d, w; seconds by default). It returns
// nanoseconds in 0..MaxWindowNs.
func ParseDuration(b []byte) (int64, error) {
	n, used := parseDigits(b)
	if used == 0 {
		return 0, ErrDuration
	}
	unit := int64(1e9)
	if used < len(b) {
		u, length := unitNs(b[used:])
		if length == 0 || used+length != len(b) {
			return 0, ErrDuration
		}
		unit = u
	}
	if n > uint64(MaxWindowNs/unit) {
		return 0, ErrTooLong
	}
	return int64(n) * unit, nil
}

var durationUnits = [...]struct {
	name string
	ns   int64
}{
	{"w", 7 * 24 * 3600e9}, {"d", 24 * 3600e9}, {"h", 3600e9}, {"m", 60e9}, {"s", 1e9},
	{"ms", 1e6}, {"us", 1e3}, {"ns", 1},
}

// unitNs returns the nanoseconds of the time unit b and the length of its name, or 0 if b is not a unit.
func unitNs(b []byte) (ns int64, length int) {
	for _, u := range durationUnits {
		if string(b) == u.name {
			return u.ns, len(u.name)
		}
	}
	return 0, 0
}

// FormatDuration writes nanoseconds as ParseDuration reads them, in the largest
// unit that is whole.
func FormatDuration(ns int64) string {
	if ns == 0 {
		return "0s"
	}
	for _, u := range durationUnits {
		if ns%u.ns == 0 {
			return strconv.FormatInt(ns/u.ns, 10) + u.name
		}
	}
	return strconv.FormatInt(ns, 10) + "ns"
}

// parseDigits reads leading digits. It saturates far above every bound of this package.
func parseDigits(b []byte) (n uint64, used int) {
	for used < len(b) && b[used]-'0' <= 9 {
		if n < 1<<58 {
			n = n*10 + uint64(b[used]-'0')
		}
		used++
	}
	return n, used
}

// parseDecimal reads digits with up to nine decimals as n/scale.
func parseDecimal(b []byte) (n, scale int64, ok bool) {
	whole, used := parseDigits(b)
	if used == 0 || whole > MaxUnits {
		return 0, 0, false
	}
	n, scale = int64(whole), 1
	if used == len(b) {
		return n, scale, true
	}
	decimals := b[used+1:]
	if b[used] != '.' || len(decimals) == 0 || len(decimals) > 9 {
		return 0, 0, false
	}
	for _, c := range decimals {
		if c-'0' > 9 || n > (1<<62)/10 {
			return 0, 0, false
		}
		n, scale = n*10+int64(c-'0'), scale*10
	}
	return n, scale, true
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
