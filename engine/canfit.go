package engine

import "github.com/weir-project/weir/engine/internal/arith"

// CanFit reports whether idle limiters of the policy admit an OpCheck: its cost is within each limit of the key that
// denies, without the units that the policy reserves.
func (p *Policy) CanFit(at Stamp, op *Op) bool {
	if p.Disabled || p.Shadow {
		return true
	}
	limits := p.limitsFor(op.Key, at.NowNs)
	for i := range limits {
		if !p.canFit(&limits[i], op) {
			return false
		}
	}
	return true
}

func (p *Policy) canFit(l *PolicyLimit, op *Op) bool {
	take := Op{Limit: l.Limit, Cost: op.want()}
	if !op.Partial {
		take.WaitNs = l.WaitNs
	}
	if reserved := reservedOf(p, &l.Limit); reserved > 0 && take.Cost > 0 && !op.High {
		take.Cost, take.WaitNs = take.Cost+reserved, 0
	}
	var d Decision
	switch l.Limit.Algorithm {
	case Strike: // a strike waits for the end of the penalty
		return true
	case TokenBucket:
		tokenBucket(arith.Uint128{}, &take, &d)
	case LeakyBucket:
		leakyBucket(arith.Uint128{}, &take, &d)
	default:
		return take.canFit()
	}
	return d.Allowed > 0
}
