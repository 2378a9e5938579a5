package service

import (
	"time"

	"github.com/weir-project/weir/engine"
)

// Account records a decided batch, for every protocol. It counts the commands, publishes denials, and notifies the
// requests that wait for returned units. Consecutive equal commands, the common case in a pipeline, are counted
// together. Each command counts with an equal share of the time, but the latency histogram observes the full time for
// each.
func (s *Service) Account(who *Client, b *Batch, ds []engine.Decision, err error, start time.Time) {
	took := time.Since(start)
	each := took / time.Duration(len(b.Queue))
	for i, at := 0, 0; i < len(b.Queue); {
		first, from := i, at
		cmd := b.Queue[i].Cmd
		for i < len(b.Queue) && b.Queue[i].Cmd == cmd {
			at += b.Queue[i].Ops
			i++
		}
		stat := s.Ran(who, cmd, i-first, start, each*time.Duration(i-first))
		if err == nil {
			s.Tell(&stat.Outcomes, b.Ops[from:at], ds[from:at])
		}
	}
	s.Stats.Decisions.Observe(took, int64(len(b.Queue)))
	if log := s.Slowlog; log.IsSlow(took) {
		log.Add(who, start, took, shownBatch(b))
	}
	if s.Waits.Count.Load() > 0 {
		s.Waits.NotifyGiven(b.Ops)
	}
}

// Ran counts n calls of a command by a client, which began at a time and together took the given time. It returns the
// statistics of the command.
func (s *Service) Ran(who *Client, cmd *Command, n int, start time.Time, took time.Duration) *CommandStat {
	who.active.Store(start.UnixNano())
	if who.Last.Load() != cmd {
		who.Last.Store(cmd)
	}
	stat := &s.Stats.by[cmd.Slot]
	stat.Calls.Add(int64(n))
	stat.Ns.Add(int64(took))
	return stat
}

// Tell counts the outcomes of the operations of one command and of the policies that they name. It publishes denials
// and lock-outs.
func (s *Service) Tell(total *Outcomes, ops []engine.Op, ds []engine.Decision) {
	var allowed, limited int64
	var policies entry
	for i := range ops {
		op, d := &ops[i], &ds[i]
		if d.Status != engine.OK || !decides(op) {
			continue
		}
		if op.Code == engine.OpExtend { // it names a hold, not its policies and keys
			allowed, limited = allowed+min(d.Allowed, 1), limited+1-min(d.Allowed, 1)
			continue
		}
		if d.Allowed != 0 {
			allowed++
		} else {
			limited++
			s.Recent.Note(op, d)
			s.Events.Denied(op, d)
		}
		if d.Locked != 0 {
			s.Events.lockedOut(s.Here.Policies(), s.Limiter.Now(), op, d)
		}
		if op.Code == engine.OpCheck || op.Code == engine.OpReserve {
			if policies.page == nil {
				policies.page = s.Book.At(s.Here.Policies())
			}
			policies.tell(op, d)
		}
	}
	if policies.page != nil {
		policies.write()
	}
	total.add(allowed, limited)
}

// deniedBy returns the policy, or else the algorithm, that denied an operation, and the key.
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
