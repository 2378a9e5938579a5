package commands

import (
	"math"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
)

// From the commands of other limiters to operations of the engine. All of them
// are token buckets but INCREX, which is a counter.

// planCell reads redis-cell's CL.THROTTLE key max_burst count period [quantity].
// Its max_burst comes on top of one request that is always possible.
func planCell(s *Session, args [][]byte) error { return s.planThrottle(args, 1) }

// planCrab reads throttlecrab's THROTTLE, whose max_burst is the whole burst.
func planCrab(s *Session, args [][]byte) error { return s.planThrottle(args, 0) }

func (s *Session) planThrottle(args [][]byte, extra int64) error {
	if len(args) > 6 {
		return arg.ErrSyntax
	}
	period, err := arg.Units("period", args[4], 1, math.MaxInt64)
	if err != nil {
		return err
	}
	op, err := s.bucket(args, extra, period, 1e9)
	if err == nil && len(args) > 5 {
		op.Cost, err = arg.Units("quantity", args[5], 0, engine.MaxUnits)
	}
	return err
}

// planGCRA reads GCRA key max_burst count period [TOKENS n], whose period may be
// a decimal number of seconds.
func planGCRA(s *Session, args [][]byte) error {
	period, unitNs, ok := decimalSeconds(args[4])
	if !ok {
		return arg.Bad("period", "must be a number of seconds above 0 and below 1000000000000, with at most nine decimals", args[4])
	}
	op, err := s.bucket(args, 1, period, unitNs)
	switch {
	case err != nil:
	case len(args) == 5:
	case len(args) != 7 || !arg.Is(args[5], "TOKENS"):
		err = arg.ErrSyntax
	default:
		op.Cost, err = arg.Units("TOKENS", args[6], 1, engine.MaxUnits)
	}
	return err
}

// bucket reads key, max_burst and count; the period is period times unitNs.
func (s *Session) bucket(args [][]byte, extra, period, unitNs int64) (*engine.Op, error) {
	op, err := s.take(args[1], engine.TokenBucket)
	if err != nil {
		return nil, err
	}
	burst, err := arg.Units("max_burst", args[2], 1-extra, engine.MaxUnits-extra)
	if err != nil {
		return nil, err
	}
	count, err := arg.Units("count", args[3], 1, engine.MaxUnits)
	if err != nil {
		return nil, err
	}
	op.Limit.Max = burst + extra
	op.Limit.Rate, err = rateOf(count, period, unitNs)
	return op, err
}

// rateOf returns count per period*unitNs in lowest terms. Reducing before
// multiplying keeps every step in 64 bits.
func rateOf(count, period, unitNs int64) (engine.Rate, error) {
	g := gcd(count, period)
	count, period = count/g, period/g
	g = gcd(count, unitNs)
	count, unitNs = count/g, unitNs/g
	if period > engine.MaxWindowNs/unitNs {
		return engine.Rate{}, errDialectRate
	}
	return engine.Rate{Units: count, PerNs: period * unitNs}, nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// decimalSeconds reads seconds with up to nine decimals as n units of unitNs,
// exactly. Above zero and below 10^12, as Redis had it.
func decimalSeconds(b []byte) (n, unitNs int64, ok bool) {
	const most = 1e12
	unitNs = 1e9
	whole, fraction := b, []byte(nil)
	for i, c := range b {
		if c == '.' {
			whole, fraction = b[:i], b[i+1:]
			if len(fraction) == 0 || len(fraction) > 9 {
				return 0, 0, false
			}
			break
		}
	}
	n, ok = arg.Int(whole)
	if !ok || n < 0 || n >= most || whole[0] == '-' {
		return 0, 0, false
	}
	for len(fraction) > 0 && fraction[len(fraction)-1] == '0' {
		fraction = fraction[:len(fraction)-1]
	}
	for _, c := range fraction {
		if c-'0' > 9 || n > (math.MaxInt64-9)/10 {
			return 0, 0, false
		}
		n, unitNs = n*10+int64(c-'0'), unitNs/10
	}
	return n, unitNs, n > 0
}
