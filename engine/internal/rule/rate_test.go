package rule_test

import (
	"errors"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/rule"
)

func TestParseRate(t *testing.T) {
	for _, c := range []struct {
		in   string
		want rule.Rate
		err  error
	}{
		{"10", rule.Rate{Units: 1, PerNs: 1e8}, nil},
		{"1", rule.Rate{Units: 1, PerNs: 1e9}, nil},
		{"10/s", rule.Rate{Units: 1, PerNs: 1e8}, nil},
		{"10/1s", rule.Rate{Units: 1, PerNs: 1e8}, nil},
		{"10/1", rule.Rate{Units: 1, PerNs: 1e8}, nil},
		{"5/m", rule.Rate{Units: 1, PerNs: 12e9}, nil},
		{"1000/h", rule.Rate{Units: 1, PerNs: 3600e6}, nil},
		{"7/d", rule.Rate{Units: 7, PerNs: dayNs}, nil},
		{"1/w", rule.Rate{Units: 1, PerNs: 7 * dayNs}, nil},
		{"1/6s", rule.Rate{Units: 1, PerNs: 6e9}, nil},
		{"3/500ms", rule.Rate{Units: 3, PerNs: 5e8}, nil},
		{"3/us", rule.Rate{Units: 3, PerNs: 1e3}, nil},
		{"3/ns", rule.Rate{Units: 3, PerNs: 1}, nil},
		{"0.5", rule.Rate{Units: 1, PerNs: 2e9}, nil},
		{"0.1/s", rule.Rate{Units: 1, PerNs: 10e9}, nil},
		{"0.000000001", rule.Rate{Units: 1, PerNs: 1e18 / 1}, rule.ErrRateSlow},
		{"0.000000001/ms", rule.Rate{Units: 1, PerNs: 1e15}, nil},
		{"2.50", rule.Rate{Units: 1, PerNs: 4e8}, nil},
		{"1.333333333/s", rule.Rate{Units: 1333333333, PerNs: 1e18}, rule.ErrRateSlow},
		{"999983/s", rule.Rate{Units: 999983, PerNs: 1e9}, nil},
		{"1/366d", rule.Rate{Units: 1, PerNs: rule.MaxWindowNs}, nil},
		{"9007199254740992/ns", rule.Rate{Units: rule.MaxUnits, PerNs: 1}, nil},
		{"007/s", rule.Rate{Units: 7, PerNs: 1e9}, nil},
		{"0.5/366d", rule.Rate{}, rule.ErrRateSlow},
		{"9007199254740993/ns", rule.Rate{}, rule.ErrRate},
		{"1/367d", rule.Rate{}, rule.ErrTooLong},
		{"", rule.Rate{}, rule.ErrRate}, {"0", rule.Rate{}, rule.ErrRate},
		{"0/s", rule.Rate{}, rule.ErrRate}, {"0.0", rule.Rate{}, rule.ErrRate},
		{"abc", rule.Rate{}, rule.ErrRate}, {"-1", rule.Rate{}, rule.ErrRate},
		{"+1", rule.Rate{}, rule.ErrRate}, {"1/", rule.Rate{}, rule.ErrRate},
		{"/s", rule.Rate{}, rule.ErrRate}, {"1/0s", rule.Rate{}, rule.ErrRate},
		{"1/x", rule.Rate{}, rule.ErrRate}, {"1/2x", rule.Rate{}, rule.ErrRate},
		{"1//s", rule.Rate{}, rule.ErrRate}, {"1/s/s", rule.Rate{}, rule.ErrRate},
		{"1.", rule.Rate{}, rule.ErrRate}, {".5", rule.Rate{}, rule.ErrRate},
		{"1.5.5", rule.Rate{}, rule.ErrRate}, {"1e3", rule.Rate{}, rule.ErrRate},
		{"1.0000000001", rule.Rate{}, rule.ErrRate}, {" 1", rule.Rate{}, rule.ErrRate},
		{"1 ", rule.Rate{}, rule.ErrRate}, {"1/ s", rule.Rate{}, rule.ErrRate},
		{"99999999999999999999999999", rule.Rate{}, rule.ErrRate}, {"NaN", rule.Rate{}, rule.ErrRate},
		{"1/S", rule.Rate{}, rule.ErrRate}, {"1,5", rule.Rate{}, rule.ErrRate},
	} {
		got, err := rule.ParseRate([]byte(c.in))
		if c.err != nil {
			require.ErrorIs(t, err, c.err, "%q", c.in)
			continue
		}
		require.NoError(t, err, "%q", c.in)
		require.Equal(t, c.want, got, "%q", c.in)
	}
}

func TestParseDuration(t *testing.T) {
	for in, want := range map[string]int64{
		"60": 60e9, "0": 0, "0ms": 0, "500ms": 5e8, "30s": 30e9, "1m": 60e9, "1h": 3600e9, "1d": dayNs,
		"1w": 7 * dayNs, "7ns": 7, "7us": 7e3, "366d": rule.MaxWindowNs, "0030s": 30e9,
		"31622400": rule.MaxWindowNs, "31622400000ms": rule.MaxWindowNs, "52w": 52 * 7 * dayNs,
	} {
		got, err := rule.ParseDuration([]byte(in))
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for in, want := range map[string]error{
		"": rule.ErrDuration, "s": rule.ErrDuration, "ms": rule.ErrDuration, "-1s": rule.ErrDuration,
		"+1": rule.ErrDuration, "1.5s": rule.ErrDuration, "1 s": rule.ErrDuration, "1S": rule.ErrDuration,
		"1min": rule.ErrDuration, "1ss": rule.ErrDuration, "1s1": rule.ErrDuration, "1h30m": rule.ErrDuration,
		"367d": rule.ErrTooLong, "53w": rule.ErrTooLong, "31622401": rule.ErrTooLong,
		"31622400000000001ns": rule.ErrTooLong, "18446744073709551616ns": rule.ErrTooLong,
		"99999999999999999999999999999999s": rule.ErrTooLong,
	} {
		_, err := rule.ParseDuration([]byte(in))
		require.ErrorIs(t, err, want, in)
	}
}

// TestRateString checks that rates are written in the form in which they are read.
func TestRateString(t *testing.T) {
	for in, want := range map[string]string{
		"10": "10/s", "0.5": "1/2s", "5/m": "1/12s", "1/6s": "1/6s", "3/ns": "3000000000/s", "7/d": "7/1d",
		"3/7s": "3/7s", "9007199254740992/ns": "9007199254740992/1ns",
	} {
		r, err := rule.ParseRate([]byte(in))
		require.NoError(t, err, in)
		require.Equal(t, want, r.String())
	}
}

const (
	hourNs = int64(3600e9)
	dayNs  = 24 * hourNs
)

var (
	durationForm = regexp.MustCompile(`^([0-9]+)(w|d|h|m|s|ms|us|ns)?$`)
	rateForm     = regexp.MustCompile(`^([0-9]+(?:\.[0-9]{1,9})?)(?:/([0-9]*)(w|d|h|m|s|ms|us|ns)?)?$`)
	unitsNs      = map[string]int64{"w": 7 * dayNs, "d": dayNs, "h": hourNs, "m": 60e9, "s": 1e9, "": 1e9,
		"ms": 1e6, "us": 1e3, "ns": 1}
)

// durationOf reads a duration by its grammar, without bounds.
func durationOf(digits, unit string) *big.Int {
	n, _ := new(big.Int).SetString(digits, 10)
	return n.Mul(n, big.NewInt(unitsNs[unit]))
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"60", "500ms", "366d", "367d", "1w", "", "s", "0", "18446744073709551616ns",
		"1.5s", "9223372036s"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := rule.ParseDuration(in)
		form := durationForm.FindSubmatch(in)
		if form == nil {
			require.ErrorIs(t, err, rule.ErrDuration)
			return
		}
		want := durationOf(string(form[1]), string(form[2]))
		if want.Cmp(big.NewInt(rule.MaxWindowNs)) > 0 {
			require.ErrorIs(t, err, rule.ErrTooLong)
			return
		}
		require.NoError(t, err)
		require.Equal(t, want.Int64(), got)
		again, err := rule.ParseDuration([]byte(rule.FormatDuration(got)))
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"10", "10/s", "5/m", "1/6s", "3/500ms", "0.5", "0", "1/0s", "1/366d", "1/367d",
		"9007199254740992/ns", "9007199254740993", "0.000000001/ms", "1.333333333", "2.5/7d", "/", "1/", "1//"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := rule.ParseRate(in)
		want, bounded := rateOf(in)
		if err != nil {
			require.True(t, errors.Is(err, rule.ErrRate) || errors.Is(err, rule.ErrRateFast) ||
				errors.Is(err, rule.ErrRateSlow) || errors.Is(err, rule.ErrTooLong), "%v", err)
			require.False(t, bounded, "%q refused: %v", in, err)
			return
		}
		require.NotNil(t, want, "%q accepted", in)
		require.Equal(t, want.String(), big.NewRat(got.Units, got.PerNs).String())
		require.Equal(t, want.Num().Int64(), got.Units, "the rate must be in lowest terms")
		require.True(t, got.Units >= 1 && got.Units <= rule.MaxUnits && got.PerNs >= 1 && got.PerNs <= rule.MaxWindowNs)
		again, err := rule.ParseRate([]byte(got.String()))
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
}

// rateOf reads a rate by its grammar. bounded reports whether the rate and every number in it are within their
// bounds.
func rateOf(in []byte) (r *big.Rat, bounded bool) {
	form := rateForm.FindSubmatch(in)
	if form == nil || strings.HasSuffix(string(in), "/") {
		return nil, false
	}
	digits, unit := string(form[2]), string(form[3])
	if digits == "" {
		digits = "1"
	}
	per := durationOf(digits, unit)
	units, _ := new(big.Rat).SetString(string(form[1]))
	if per.Sign() == 0 || units.Sign() == 0 {
		return nil, false
	}
	r = new(big.Rat).Quo(units, new(big.Rat).SetInt(per))
	bounded = per.Cmp(big.NewInt(rule.MaxWindowNs)) <= 0 &&
		r.Num().Cmp(big.NewInt(rule.MaxUnits)) <= 0 && r.Denom().Cmp(big.NewInt(rule.MaxWindowNs)) <= 0 &&
		len(form[1]) <= 17 && units.Cmp(new(big.Rat).SetInt64(rule.MaxUnits)) <= 0
	return r, bounded
}

func TestNoDurationIsInSeconds(t *testing.T) { require.Equal(t, "0s", rule.FormatDuration(0)) }
