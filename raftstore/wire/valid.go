package wire

import "github.com/weir-project/weir/engine"

// Valid reports whether the engine can compute with the operation. It repeats the checks of the server, because a
// damaged or forged message could make the engine fail. An invalid operation must not enter the log, because
// nodes carry out entries without this check.
func Valid(op *engine.Op) bool {
	within := func(v, low, high int64) bool { return low <= v && v <= high }
	longest := int64(engine.MaxKeyLen)
	reserved := engine.Reserved(op.Key) && op.Code != engine.OpCommit && op.Code != engine.OpCancel &&
		op.Code != engine.OpExtend && op.Code != engine.OpEnd
	if reserved {
		longest = int64(engine.MaxNameLen)
	}
	ok := within(int64(len(op.Key)), 1, longest) && len(op.ID) <= engine.MaxIDLen &&
		within(op.Cost, 0, engine.MaxUnits) && within(op.WaitNs, 0, engine.Never) && within(op.TTLNs, 0, engine.Never)
	if reserved && op.Code != engine.OpReset && op.Code != engine.OpRefund && op.Code != engine.OpForget &&
		op.Code != engine.OpResetPolicy {
		return false // only a policy may create such a limiter
	}
	decides := op.Code == engine.OpTake || op.Code == engine.OpCheck || op.Code == engine.OpReserve
	if len(op.From) > engine.MaxFromLen || len(op.From) > 0 && !decides {
		return false
	}
	if op.Keep && keepFlag(op.Code) == 0 || !validElse(op) {
		return false
	}
	switch op.Code {
	case engine.OpTake:
		return ok && op.Limit.Valid() && len(op.Text) <= engine.MaxHolderLen &&
			(!op.Limit.Mode.Calendar() || op.Calendar != nil)
	case engine.OpRelease, engine.OpRenew:
		return ok && within(int64(len(op.Text)), 1, engine.MaxHolderLen)
	case engine.OpBlock, engine.OpBlockEverywhere:
		return ok && len(op.Text) <= engine.MaxReasonLen
	case engine.OpIncr:
		return ok && op.Incr != nil && op.Incr.Expire <= engine.ExpireNone
	case engine.OpCheck, engine.OpForgive, engine.OpCharge:
		return ok && validPairs(op)
	case engine.OpReserve:
		return ok && validPairs(op) && len(op.ID) > 0 && op.Cost > 0 && !op.Partial && within(op.TTLNs, 1,
			engine.MaxWindowNs) &&
			op.HoldBytes() <= engine.MaxHoldBytes
	case engine.OpCommit, engine.OpCancel, engine.OpEnd:
		return ok && len(op.Key) <= engine.MaxIDLen && len(op.ID) == 0 && !op.Dry
	case engine.OpExtend:
		return ok && len(op.Key) <= engine.MaxIDLen && op.Extension() > 0 && !op.Dry &&
			within(op.TTLNs, 0, engine.MaxWindowNs)
	case engine.OpResetPolicy:
		_, _, _, named := engine.SplitName(op.Key)
		return ok && named
	case engine.OpFlush:
		return ok && op.Cost < engine.Databases
	case engine.OpPolicy:
		return ok && op.Policy != nil && op.Policy.Valid(op.Key)
	case engine.OpScript:
		return ok && op.Script != nil && op.Script.Valid()
	default:
		return ok && op.Code < engine.NumOps
	}
}

// validElse reports whether an operation may have its Else.
func validElse(op *engine.Op) bool {
	return op.Else == 0 || (op.Code == engine.OpCheck || op.Code == engine.OpReserve) && op.Else.Valid(1+len(op.Also))
}

// validPairs reports whether a check names valid and distinct pairs. Each pair is previewed before any is charged, so
// two equal pairs could both fit although their sum does not.
func validPairs(op *engine.Op) bool {
	if len(op.Also) >= engine.MaxPairs || len(op.Text) == 0 || len(op.Text) > engine.MaxPolicyLen {
		return false
	}
	for i, p := range op.Also {
		if len(p.Policy) == 0 || len(p.Policy) > engine.MaxPolicyLen || len(p.Key) == 0 ||
			len(p.Key) > engine.MaxKeyLen || engine.Reserved(p.Key) ||
			samePair(p, engine.Pair{Policy: op.Text, Key: op.Key}) {
			return false
		}
		for _, other := range op.Also[:i] {
			if samePair(p, other) {
				return false
			}
		}
	}
	return true
}

func samePair(a, b engine.Pair) bool {
	return string(a.Policy) == string(b.Policy) && string(a.Key) == string(b.Key)
}
