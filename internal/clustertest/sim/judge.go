package sim

import (
	"slices"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/clustertest/ledger"
	"github.com/weir-project/weir/limiter"
)

// judge checks the guarantees against the history. used returns the units in use on a key at the end.
func (s *Simulation) judge(used func(key string) (int64, bool)) {
	for key, rs := range s.history.byKey(refilling) {
		s.breach(key, ledger.OverAdmittedBucket(refillBurst, refillPerSecond, drift, grantsOf(rs)))
	}
	for key, rs := range s.history.byKey(sliding) {
		s.breach(key, ledger.OverAdmittedWindow(slidingMax, slidingWindow, drift, grantsOf(rs)))
	}
	for _, kind := range []byte{counted, tight, once} {
		for key, rs := range s.history.byKey(kind) {
			s.violations(key, checkOrder(rs), checkDenials(rs), checkSameAnswer(rs), s.counted(key, rs, used))
		}
	}
	for _, kind := range []byte{counted, tight} {
		for key, rs := range s.history.byKey(kind) {
			s.violations(key, checkReads(key, rs, s.history.readsOf(key)))
		}
	}
	for key, rs := range s.history.byKey(returned) {
		s.violations(key, checkSameAnswer(rs), s.counted(key, rs, used))
	}
	for key, rs := range s.history.byKey(cleared) {
		if n, ok := used(key); ok {
			s.violations(key, checkCleared(key, rs, n))
		}
	}
}

func (s *Simulation) counted(key string, rs []record, used func(string) (int64, bool)) []string {
	n, ok := used(key)
	if !ok {
		return nil // the missing answer is recorded already
	}
	return checkCount(key, rs, n)
}

func (s *Simulation) breach(key string, err error) {
	if err != nil {
		s.violation("%s: %v", key, err)
	}
}

func (s *Simulation) violations(key string, found ...[]string) {
	for _, text := range slices.Concat(found...) {
		s.violation("%s", text)
	}
}

// outcomeOf returns the outcome that the status of one operation means. A router in front of several groups answers
// with a status where one group returns an error.
func (s *Simulation) outcomeOf(op engine.Op, status engine.Status) outcome {
	switch o := limiter.OutcomeOfStatus(status); {
	case o == 0:
		return acked
	case o.MayBeDone():
		return unknown
	case o == limiter.ErrWrongGroup || o == limiter.ErrCrossSlot:
		if !misroutes(s.config.Faults) {
			s.violation("an operation on %s was sent to the wrong group", op.Key)
		}
	}
	return refused
}
