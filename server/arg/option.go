package arg

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
)

// Options parses the options of op, in any order and each at most once. It returns the options that were present, and
// the value of TZ.
func Options(op *engine.Op, args [][]byte, allowed limits.Option) (seen limits.Option, zone []byte, err error) {
	seen, err = limits.Options(args, allowed, func(bit limits.Option, value []byte) error {
		if bit == limits.Zone {
			zone = value
		}
		return applyOption(op, bit, value)
	})
	return seen, zone, err
}

func applyOption(op *engine.Op, bit limits.Option, value []byte) (err error) {
	switch bit {
	case limits.Cost:
		op.Cost, err = limits.Units("COST", value, 0, engine.MaxUnits)
	case limits.Partial:
		op.Partial = true
	case limits.MaxWait:
		op.WaitNs, err = limits.Duration("MAXWAIT", value)
	case limits.Holder:
		op.Text, err = value, CheckText("HOLDER", value, engine.MaxHolderLen)
	case limits.Reason:
		op.Text, err = value, CheckText("REASON", value, engine.MaxReasonLen)
	case limits.Priority:
		if op.High = limits.Is(value, "HIGH"); !op.High && !limits.Is(value, "NORMAL") {
			err = limits.Bad("PRIORITY", "must be high or normal", value)
		}
	case limits.From:
		op.From, err = Address("FROM", value)
	case limits.Sequence:
		var number int64
		number, err = limits.Units("SEQ", value, 1, engine.MaxExtensions)
		op.ID = engine.ExtensionID(number)
	case limits.TTL:
		op.TTLNs, err = limits.Span("TTL", value)
	case limits.Expire:
		if op.Keep = limits.Is(value, "TAKE"); !op.Keep && !limits.Is(value, "RETURN") {
			err = limits.Bad("EXPIRE", "must be return or take", value)
		}
	case limits.Longer, limits.Keep:
		op.Keep = true
	case limits.Split:
		if op.Else |= engine.Split; op.Else == engine.Split {
			err = limits.Error("SPLIT needs ELSE before it, with a policy and a key that pay the rest")
		}
	case limits.ID:
		op.ID, err = value, CheckText("ID", value, engine.MaxIDLen)
	default:
		err = limits.Apply(&op.Limit, bit)
	}
	return err
}
