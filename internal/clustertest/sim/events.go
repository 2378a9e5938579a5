package sim

import (
	"math"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// agreeOnEvents compares the logs of events of all members, and judges the events by the histories.
func (s *Simulation) agreeOnEvents() {
	s.agree()
	var events []ledger.Event
	for group := range s.groups() {
		var log ledger.EventLog
		last := map[int]bool{}
		for _, p := range s.membersOf(group) {
			list, _, _ := p.node.Events(group, 0, math.MaxInt)
			seen := make([]ledger.Event, len(list))
			for i := range list {
				e := &list[i]
				seen[i] = ledger.Event{Cursor: e.Cursor, AtMs: e.AtMs, Kind: e.Kind.String(),
					Pair: ledger.Pair{Policy: e.Policy, Key: e.Key}, ID: e.ID, Share: e.Share, Amount: e.Amount,
					Used: e.Used, Limit: e.Limit}
			}
			if err := log.Add(p.host.id, 0, seen); err != nil {
				s.violation("%v", err)
			}
			last[len(seen)] = true
		}
		if len(last) != 1 {
			s.violation("the members of group %d have different numbers of events: %v", group, last)
		}
		all, _ := log.Events()
		for _, e := range all {
			if e.Kind == ledger.ThresholdEvent { // several clients settle one hold, perhaps late
				events = append(events, e)
			}
		}
	}
	var takings []ledger.Taking
	for _, trail := range s.books.Lasting.Trails() {
		ops := trail.Ops()
		takings = append(takings, ledger.TakingsOf(ops)...)
		s.report.count(ops)
	}
	if _, err := ledger.Told(s.books.Lasting.Traffic.Thresholds(), takings, nil, events); err != nil {
		s.violation("%v", err)
	}
	s.report.kinds("threshold", len(events))
}

// count counts the answered operations on holds that grow, and with alternatives.
func (r *Report) count(ops []ledger.Op) {
	for i := range ops {
		switch op := &ops[i]; {
		case op.Unknown || op.Answer.Status != ledger.OK:
		case op.Verb == ledger.Extend && op.Answer.Allowed == 1:
			r.kinds("extension", 1)
		case op.Keep:
			r.kinds("report", 1)
		case op.Split && op.Answer.Paid != "":
			r.kinds("split", 1)
		case len(op.Else) > 0 && op.Answer.Paid != "":
			r.kinds("else", 1)
		}
	}
}

func (r *Report) kinds(kind string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Budgets[kind] += n
}
