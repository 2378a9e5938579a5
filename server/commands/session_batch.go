package commands

import (
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/service"
)

// plan appends the operations of one command to the session's batch. After an
// error nothing has been appended.
func (s *Session) plan(cmd *command, args [][]byte) error {
	if s.batch == nil {
		s.batch = s.srv.Batches.Get()
	}
	b := s.batch
	before := len(b.Ops)
	err := cmd.plan(s, args)
	if err == nil && s.limits != nil && cmd.keyed && !s.limits.MayDecide(b.Ops[before:]) {
		err = s.srv.Refused(service.ErrNoKey)
	}
	if err != nil {
		b.Truncate(before)
		if err == arg.ErrSyntax {
			err = syntaxError(cmd)
		}
		return err
	}
	b.Queue = append(b.Queue, service.Deferred{Cmd: &cmd.Command, Ops: len(b.Ops) - before})
	return nil
}

// Settle sends the deferred operations to the Limiter in one call and appends
// their replies in order.
func (s *Session) Settle() {
	b := s.batch
	if b == nil {
		return
	}
	s.batch, s.Confirmed = nil, false
	if len(b.Queue) > 0 {
		start := time.Now()
		ds := b.Decisions()
		err := s.srv.Redirect()
		if err == nil {
			err = s.srv.Limiter.Decide(b.Ops, ds)
		}
		if s.Road != nil {
			s.Road.decided(b, start, err)
		}
		at := 0
		for i := range b.Queue {
			d := &b.Queue[i]
			s.answer(s.srv.table.bySlot[d.Cmd.Slot], b.Ops[at:at+d.Ops], ds[at:at+d.Ops], err)
			at += d.Ops
		}
		s.srv.Account(&s.about, b, ds, err, start)
	}
	s.srv.Batches.Put(b)
}

// answer writes the reply to one command's operations.
func (s *Session) answer(cmd *command, ops []engine.Op, ds []engine.Decision, err error) {
	if err == nil {
		for i := range ds {
			if ds[i].Status != engine.OK {
				err = s.statusError(&ops[i], &ds[i])
				break
			}
		}
	}
	if err != nil {
		s.fail(forKey(err, ops[0].Key))
		s.srv.Stats.Fail(&cmd.Command)
		return
	}
	cmd.answer(s, ops, ds)
}
