package commands

import (
	"math"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

// planIncr reads INCREX of Redis 8.8.
func planIncr(s *Session, args [][]byte) error {
	op, err := s.op(engine.OpIncr, args[1])
	if err != nil {
		return err
	}
	incr := s.batch.NextIncr()
	*incr = engine.Incr{By: 1, Lower: math.MinInt64, Upper: math.MaxInt64}
	op.Incr = incr
	var seen incrOption
	for rest := args[2:]; len(rest) > 0; {
		used, err := readIncrOption(s.srv, incr, rest, &seen)
		if err != nil {
			return err
		}
		rest = rest[used:]
	}
	switch {
	case incr.Lower > incr.Upper:
		return resp.Error("ERR LBOUND must not be above UBOUND")
	case incr.OnlyIfNew && incr.Expire != engine.ExpireIn:
		return resp.Error("ERR ENX needs EX, PX, EXAT or PXAT")
	}
	return nil
}

// incrOption has a bit for each option that INCREX accepts once.
type incrOption uint8

const (
	incrBy incrOption = 1 << iota
	incrLower
	incrUpper
	incrSaturate
	incrExpiry
	incrNew
)

var incrWords = [...]struct {
	word  string
	bit   incrOption
	value bool
}{
	{"BYINT", incrBy, true}, {"BYFLOAT", incrBy, true}, {"LBOUND", incrLower, true}, {"UBOUND", incrUpper, true},
	{"SATURATE", incrSaturate, false}, {"PERSIST", incrExpiry, false}, {"ENX", incrNew, false},
	{"EX", incrExpiry, true}, {"PX", incrExpiry, true}, {"EXAT", incrExpiry, true}, {"PXAT", incrExpiry, true},
}

// readIncrOption reads one option of INCREX and returns how many arguments it took.
func readIncrOption(srv *Shared, incr *engine.Incr, args [][]byte, seen *incrOption) (used int, err error) {
	for _, o := range incrWords {
		if !limits.Is(args[0], o.word) {
			continue
		}
		if *seen&o.bit != 0 || o.value && len(args) < 2 {
			return 0, arg.ErrSyntax
		}
		*seen |= o.bit
		if !o.value {
			setIncrFlag(incr, o.bit)
			return 1, nil
		}
		return 2, setIncrValue(srv, incr, o.word, args[1])
	}
	return 0, arg.ErrSyntax
}

func setIncrFlag(incr *engine.Incr, bit incrOption) {
	switch bit {
	case incrSaturate:
		incr.Saturate = true
	case incrNew:
		incr.OnlyIfNew = true
	case incrExpiry:
		incr.Expire = engine.ExpireNone
	}
}

func setIncrValue(srv *Shared, incr *engine.Incr, word string, value []byte) (err error) {
	switch word {
	case "BYFLOAT":
		return errByFloat
	case "BYINT":
		incr.By, err = limits.Units(word, value, math.MinInt64, math.MaxInt64)
	case "LBOUND":
		incr.Lower, err = limits.Units(word, value, math.MinInt64, math.MaxInt64)
	case "UBOUND":
		incr.Upper, err = limits.Units(word, value, math.MinInt64, math.MaxInt64)
	default:
		incr.Expire = engine.ExpireIn
		incr.ExpireNs, err = incrLifetime(srv, word, value)
	}
	return err
}

// incrLifetime returns the time to live that EX, PX, EXAT or PXAT gives, in nanoseconds from now.
func incrLifetime(srv *Shared, word string, value []byte) (int64, error) {
	unitNs := int64(1e9)
	if word[0] == 'P' {
		unitNs = 1e6
	}
	n, err := limits.Units(word, value, 1, math.MaxInt64/unitNs)
	if err != nil {
		return 0, err
	}
	ns := n * unitNs
	if len(word) == len("EXAT") {
		now := srv.Limiter.Now()
		ns -= now.NowNs + now.WallOffsetNs
	}
	if ns > engine.MaxWindowNs {
		return 0, limits.Bad(word, "must be at most 366 days ahead", value)
	}
	return ns, nil
}
