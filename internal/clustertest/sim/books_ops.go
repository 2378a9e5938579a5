package sim

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// engineOp converts an operation of package ledger to package engine.
func engineOp(op ledger.Op) engine.Op {
	switch op.Verb {
	case ledger.Set:
		return engine.Op{Code: engine.OpPolicy, Key: []byte(op.Pairs[0].Policy), Policy: changeOf(op)}
	case ledger.Commit:
		return engine.Op{Code: engine.OpCommit, Key: []byte(op.ID), Cost: op.Units, Keep: op.Keep}
	case ledger.Extend:
		e := engine.Op{Code: engine.OpExtend, Key: []byte(op.ID), Cost: op.Units, ID: engine.ExtensionID(op.Seq)}
		e.Bind()
		return e
	case ledger.Cancel:
		return engine.Op{Code: engine.OpCancel, Key: []byte(op.ID), Cost: 1}
	case ledger.Take, ledger.Refund, ledger.Reset:
		key := op.Pairs[0].Key
		return engine.Op{Code: codeOf[op.Verb], Key: []byte(key), Limit: limitOf(key), Cost: op.Units}
	}
	e := engine.Op{Code: engine.OpCheck, Text: []byte(op.Pairs[0].Policy), Key: []byte(op.Pairs[0].Key), Cost: op.Units}
	for _, p := range op.Pairs[1:] {
		e.Also = append(e.Also, engine.Pair{Policy: []byte(p.Policy), Key: []byte(p.Key)})
	}
	for _, first := range op.Else {
		e.Else |= 1 << first
	}
	if op.Split {
		e.Else |= engine.Split
	}
	if op.Verb == ledger.Reserve {
		e.Code, e.ID, e.TTLNs = engine.OpReserve, []byte(op.ID), op.TTLNs
	}
	return e
}

var codeOf = map[ledger.Verb]engine.OpCode{
	ledger.Take: engine.OpTake, ledger.Refund: engine.OpRefund, ledger.Reset: engine.OpReset,
}

func changeOf(op ledger.Op) *engine.PolicyChange {
	if len(op.Maxima) == 0 {
		return &engine.PolicyChange{Do: engine.PolicyDelete}
	}
	terms := &engine.Policy{Record: op.Record}
	var notify []byte
	for _, share := range op.Notify {
		notify = append(notify, byte(share))
	}
	for _, most := range op.Maxima {
		terms.Limits = append(terms.Limits, engine.PolicyLimit{Notify: engine.Thresholds(notify),
			Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever, Max: most}})
	}
	return &engine.PolicyChange{Reset: op.Reset, Terms: terms}
}

// answerOf converts a decision to an answer of package ledger.
func (s *Simulation) answerOf(op ledger.Op, d engine.Decision) ledger.Answer {
	status, known := map[engine.Status]ledger.Status{
		engine.OK: ledger.OK, engine.UnknownPolicy: ledger.NoPolicy, engine.NoHold: ledger.NoHold,
		engine.OtherTerms: ledger.OtherTerms, engine.HoldEnded: ledger.HoldEnded, engine.OutOfOrder: ledger.OutOfOrder,
	}[d.Status]
	switch {
	case !known:
		s.violation("%v was answered with status %d", op, d.Status)
	case status == ledger.OutOfOrder:
		return ledger.Answer{Status: status, Limit: d.NextExtension()}
	case status != ledger.OK:
		return ledger.Answer{Status: status}
	case op.Verb == ledger.Check:
		return ledger.Answer{Allowed: d.Allowed, Left: d.Remaining, Limit: d.Limit, Policy: op.Pairs[d.Pair].Policy,
			Paid: d.Value}
	case op.Verb == ledger.Reserve, op.Verb == ledger.Extend:
		return ledger.Answer{Allowed: d.Allowed, Left: d.Remaining, Limit: d.Limit, Paid: d.Value}
	case op.Verb == ledger.Take:
		return ledger.Answer{Allowed: d.Allowed * op.Units, Left: d.Remaining}
	case op.Verb == ledger.Reset:
		return ledger.Answer{Left: d.Allowed}
	case op.Verb == ledger.Cancel, op.Verb == ledger.Set && len(op.Maxima) == 0:
		return ledger.Answer{Allowed: d.Allowed}
	}
	return ledger.Answer{Left: d.Remaining}
}
