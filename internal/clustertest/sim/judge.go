package sim

import (
	"errors"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// drift is how much faster than true time a node's clock may run.
const drift = maxDriftPPM / 1e6

// judge checks the guarantees against the histories. Histories of counters are judged after the bubble ends, as those
// of closeBooks.
func (s *Simulation) judge() {
	for kind, rings := range s.limits {
		for _, ring := range rings {
			for _, trail := range ring.Trails() {
				grants := ledger.Grants(trail.Ops())
				switch kind {
				case refilling:
					s.breach(trail, ledger.OverAdmittedBucket(refillBurst, refillPerSecond, drift, grants))
				case sliding:
					s.breach(trail, ledger.OverAdmittedWindow(slidingMax, slidingWindow, drift, grants))
				default:
					s.judgeCounter(trail)
				}
			}
		}
	}
}

// judgeCounter adds the units that all members count in the end to a history, which must be linearizable with them.
func (s *Simulation) judgeCounter(trail *ledger.Trail) {
	op := trail.Op(ledger.Inspect, 0)
	op.CallNs = s.elapsed().Nanoseconds()
	used, ok := s.ask(trail.Name)
	if !ok {
		return // the missing answer is recorded already
	}
	op.ReturnNs, op.Answer.Left = s.elapsed().Nanoseconds(), trail.Max-used
	trail.Add(op)
	s.report.later = append(s.report.later, func() error {
		_, err := ledger.Staleness(trail.Ops(), trail.StaleReads())
		return errors.Join(ledger.Linearizable(trail.Ops()), err)
	})
}

func (s *Simulation) breach(trail *ledger.Trail, err error) {
	if err != nil {
		s.violation("%s: %v", trail.Name, err)
	}
}
