package service

import (
	"encoding/json"
	"time"

	"github.com/weir-project/weir/engine"
)

// lockout is the message of a lock-out. A program reads from it which key is denied, and for how long.
type lockout struct {
	Policy  string `json:"policy,omitempty"` // empty for RL.STRIKE
	Key     string `json:"key"`              // invalid UTF-8 is replaced
	Seconds int64  `json:"seconds"`          // rounded up
	DB      uint8  `json:"db,omitempty"`     // of the key
}

// lockedOut publishes the lock-outs that a decision began, if there are listeners.
func (h *Events) lockedOut(set *engine.Policies, at engine.Stamp, op *engine.Op, d *engine.Decision) {
	if h.Listeners.Load() == 0 {
		return
	}
	if op.Code != engine.OpCheck {
		h.tellLockout(h.lockouts, lockout{Key: string(op.Key), Seconds: lastPenaltySeconds(&op.Limit),
			DB: op.Database})
		return
	}
	for i := range engine.MaxPairs {
		if d.Locked>>i&1 == 0 {
			continue
		}
		pair, seconds := op.PairAt(i), int64(0)
		if p := set.Get(pair.Policy); p != nil {
			for _, l := range p.LimitsFor(at, pair.Key) {
				seconds = max(seconds, lastPenaltySeconds(&l.Limit))
			}
		}
		ch := h.policyChannel(lockoutPrefix, pair.Policy)
		h.tellLockout(ch, lockout{Policy: string(pair.Policy), Key: string(pair.Key), Seconds: seconds,
			DB: op.Database})
	}
}

func (h *Events) tellLockout(ch *eventChannel, message lockout) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if len(ch.heard) == 0 {
		return
	}
	text, err := json.Marshal(message)
	if err == nil {
		h.publish(ch, []byte(message.Key), text)
	}
}

// lastPenaltySeconds returns the penalty of a limit's last step, or 0 for a limit that is not STRIKE.
func lastPenaltySeconds(l *engine.Limit) int64 {
	if l.Algorithm != engine.Strike {
		return 0
	}
	penalty := time.Duration(l.Steps.At(l.Steps.Len() - 1).PenaltyNs)
	return int64((penalty + time.Second - 1) / time.Second)
}
