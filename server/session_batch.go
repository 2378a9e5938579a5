package server

import (
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
)

// plan appends the operations of one command to the session's batch. After an
// error nothing has been appended.
func (s *session) plan(cmd *command, args [][]byte) error {
	if s.batch == nil {
		s.batch = s.srv.batches.get()
	}
	b := s.batch
	before := len(b.ops)
	err := cmd.plan(s, args)
	if err == nil && s.limits != nil && cmd.keyed && !s.limits.MayDecide(b.ops[before:]) {
		err = s.srv.refused(errNoKey)
	}
	if err != nil {
		b.truncate(before)
		if err == arg.ErrSyntax {
			err = syntaxError(cmd)
		}
		return err
	}
	b.queue = append(b.queue, deferred{&cmd.commandInfo, len(b.ops) - before})
	return nil
}

// settle sends the deferred operations to the Limiter in one call and appends
// their replies in order.
func (s *session) settle() {
	b := s.batch
	if b == nil {
		return
	}
	s.batch, s.confirmed = nil, false
	if len(b.queue) > 0 {
		start := time.Now()
		ds := b.room()
		err := s.srv.redirect()
		if err == nil {
			err = s.srv.lim.Decide(b.ops, ds)
		}
		if s.road != nil {
			s.road.decided(b, start, err)
		}
		at := 0
		for i := range b.queue {
			d := &b.queue[i]
			s.answer(s.srv.state.table.bySlot[d.cmd.slot], b.ops[at:at+d.ops], ds[at:at+d.ops], err)
			at += d.ops
		}
		s.srv.account(&s.about, b, ds, err, start)
	}
	s.srv.batches.put(b)
}

// answer writes the reply to one command's operations.
func (s *session) answer(cmd *command, ops []engine.Op, ds []engine.Decision, err error) {
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
		s.srv.stats.fail(&cmd.commandInfo)
		return
	}
	cmd.answer(s, ops, ds)
}
