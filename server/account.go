package server

import (
	"time"

	"github.com/weir-project/weir/engine"
)

// account is what becomes of a batch beside its answers, by whichever road it came: its
// commands are counted, denials are told to those who want to know, and those who wait
// for what it gave back are called. Runs of one command, which is what pipelines are made
// of, are counted at once; the time is shared out evenly, but each of them has waited for
// all of it.
func (s *service) account(who *clientInfo, b *batch, ds []engine.Decision, err error, start time.Time) {
	took := time.Since(start)
	each := took / time.Duration(len(b.queue))
	for i, at := 0, 0; i < len(b.queue); {
		first, from := i, at
		cmd := b.queue[i].cmd
		for i < len(b.queue) && b.queue[i].cmd == cmd {
			at += b.queue[i].ops
			i++
		}
		s.stats.count(cmd, i-first, each*time.Duration(i-first), false)
		if err == nil {
			s.tell(&s.stats.of(cmd).outcomes, b.ops[from:at], ds[from:at])
		}
		who.touch(cmd, start)
	}
	s.stats.decisions.Observe(took, int64(len(b.queue)))
	if log := s.slowlog; log.isSlow(took) {
		log.add(who, start, took, shownBatch(b))
	}
	s.waits.given(b.ops)
}

// tell counts the outcomes of the operations of one command, and of the policies
// they name, and shows what was denied.
func (s *service) tell(total *outcomes, ops []engine.Op, ds []engine.Decision) {
	var allowed, limited int64
	var policies entry
	for i := range ops {
		op, d := &ops[i], &ds[i]
		if d.Status != engine.OK || !decides(op) {
			continue
		}
		if d.Allowed != 0 {
			allowed++
		} else {
			limited++
			s.recent.note(op, d)
			s.hub.denied(op, d)
		}
		if d.Locked != 0 {
			s.hub.lockedOut(s.lim.Policies(), s.lim.Now(), op, d)
		}
		if op.Code == engine.OpCheck || op.Code == engine.OpReserve {
			if policies.page == nil {
				policies.page = s.book.at(s.lim.Policies())
			}
			policies.tell(op, d)
		}
	}
	policies.write()
	total.add(allowed, limited)
}

// deniedBy is what denied an operation, the policy or else the algorithm, and which key.
func deniedBy(op *engine.Op, d *engine.Decision) (policy []byte, a engine.Algorithm, key []byte) {
	switch op.Code {
	case engine.OpCheck, engine.OpReserve:
		binds := op.PairAt(int(d.Pair))
		return binds.Policy, 0, binds.Key
	case engine.OpIncr:
		return nil, engine.Counter, op.Key
	case engine.OpScript:
		return nil, engine.Scripted, op.Key
	}
	return nil, op.Limit.Algorithm, op.Key
}
