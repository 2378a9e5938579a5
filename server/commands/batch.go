package commands

import (
	"strconv"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/service"
)

// plan appends the operations of one command to the session's batch. After an error it has appended nothing.
func (s *Session) plan(cmd *command, args [][]byte) error {
	if s.batch == nil {
		s.openBatch(s.srv.Batches.Get())
	}
	b := s.batch
	before := len(b.Ops)
	err := cmd.plan(s, args)
	if err == nil {
		err = s.checkOps(cmd.keyed, b.Ops[before:])
	}
	if err == nil && s.database != 0 {
		err = s.enterDatabase(b.Ops[before:])
	}
	if err != nil {
		b.Truncate(before)
		if err == arg.ErrSyntax {
			err = syntaxError(cmd)
		}
		return err
	}
	for i := before; i < len(b.Ops); i++ {
		b.Ops[i].Bind()
	}
	b.Queue = append(b.Queue, service.Deferred{Cmd: &cmd.Command, Ops: len(b.Ops) - before})
	return nil
}

// checkOps checks whether the session may decide operations, whose keys count for its user if keyed is set.
func (s *Session) checkOps(keyed bool, ops []engine.Op) (err error) {
	if s.limits != nil && keyed && !s.limits.MayDecide(ops) {
		return s.srv.Refused(service.ErrNoKey)
	}
	if s.blacklist() != "" {
		err = checkNotBlacklist(s, ops)
	}
	if err == nil && s.layouts != nil {
		err = checkPlainNames(s.layouts, ops)
	}
	return err
}

// enterDatabase puts operations into the selected database, which is not 0.
func (s *Session) enterDatabase(ops []engine.Op) (err error) {
	for i := 0; err == nil && i < len(ops); i++ {
		err = arg.InDatabase(&ops[i], s.database)
	}
	return err
}

// openBatch makes b the session's batch.
func (s *Session) openBatch(b *service.Batch) {
	s.batch, s.layouts = b, nil
	if set := s.srv.Here.Policies(); len(set.Layouts) > 0 {
		s.layouts = set
	}
}

// DecidePending sends the deferred operations to the Limiter in one call, and appends their replies in order.
func (s *Session) DecidePending() {
	b := s.batch
	if b == nil {
		return
	}
	s.batch = nil
	s.reads.End()
	if len(b.Queue) > 0 {
		start := time.Now()
		ds := b.Decisions()
		away, err := s.decideHere(b, ds)
		if s.Trace != nil {
			s.Trace.decided(b, start, err)
		}
		var cmd *command // the command of d; looked up only when it differs from the command before
		at := 0
		for i := range b.Queue {
			d := &b.Queue[i]
			if cmd == nil || d.Cmd != &cmd.Command {
				cmd = s.srv.table.bySlot[d.Cmd.Slot]
			}
			failed := err
			if away != nil && away[i] != nil {
				failed = away[i]
			}
			s.answer(cmd, b.Ops[at:at+d.Ops], ds[at:at+d.Ops], failed)
			at += d.Ops
		}
		s.srv.Account(&s.about, b, ds, err, start)
	}
	s.srv.Batches.Put(b)
}

// decideHere decides the operations of a batch, as service.DecideHere does for a client that follows redirects.
func (s *Session) decideHere(b *service.Batch, ds []engine.Decision) (away []error, err error) {
	if !s.redirects() {
		return nil, s.srv.Limiter.Decide(b.Ops, ds)
	}
	return s.srv.DecideHere(b, ds)
}

// answer writes the reply to one command's operations.
func (s *Session) answer(cmd *command, ops []engine.Op, ds []engine.Decision, err error) {
	if err == nil {
		err = s.failure(ops, ds)
	}
	if err != nil {
		s.fail(forKey(err, ops[0].Key))
		s.srv.Stats.Fail(&cmd.Command)
		return
	}
	cmd.answer(s, ops, ds)
}

// The following functions begin an operation.

// op begins an operation on key, at the end of the session's batch.
func (s *Session) op(code engine.OpCode, key []byte) (*engine.Op, error) {
	if err := arg.CheckKey(key); err != nil {
		return nil, lacks(service.PassesBound, err, "make the keys 1 to "+strconv.Itoa(engine.MaxKeyLen)+" bytes long")
	}
	if engine.Reserved(key) && code != engine.OpReset && code != engine.OpRefund {
		return nil, arg.ErrReservedKey
	}
	op := s.batch.Next()
	op.Code, op.Key = code, key
	return op, nil
}

// textOp begins an operation on a key with a text: its policy or its holder. name is the argument of the text.
func (s *Session) textOp(code engine.OpCode, key []byte, name string, text []byte, most int) (*engine.Op, error) {
	op, err := s.op(code, key)
	if err == nil {
		op.Text, err = text, arg.CheckText(name, text, most)
	}
	return op, err
}

// take begins a decision of cost 1.
func (s *Session) take(key []byte, a engine.Algorithm) (*engine.Op, error) {
	op, err := s.op(engine.OpTake, key)
	if err != nil {
		return nil, err
	}
	op.Limit.Algorithm, op.Cost = a, 1
	return op, nil
}

// Tracer receives the timing of some decisions. Its methods may be called from any goroutine, and must be quick.
type Tracer interface {
	// Picks reports whether the decisions that have just been read shall be traced. It is called for each read of each
	// client.
	Picks() bool
	// Trace is called after the replies of the decisions are written.
	Trace(Trace)
}

// Trace is the trace of the decisions that arrived in one read of a client.
type Trace struct {
	Command  string // the first command
	Commands int
	Err      error // why the last batch was not answered

	// Read is when the bytes had arrived. Decide and Decided are when the limiter began and ended. Replied is when the
	// operating system had the answers.
	Read, Decide, Decided, Replied time.Time
}

// Begin begins a read cycle. An earlier ReadIndex does not cover the commands that have just been read. A trace of them
// begins if the tracer picks them.
func (s *Session) Begin() {
	s.reads.End()
	s.Trace = nil
	if t := s.srv.cfg.Tracer; t != nil && t.Picks() {
		s.Trace = &Trace{Read: time.Now()}
	}
}

// decided records a batch that the limiter began at start and has now finished.
func (r *Trace) decided(b *service.Batch, start time.Time, err error) {
	if r.Commands == 0 {
		r.Command, r.Decide = b.Queue[0].Cmd.Full, start
	}
	r.Commands, r.Decided, r.Err = r.Commands+len(b.Queue), time.Now(), err
}

// EndTrace gives the trace to the tracer, unless the read contained no decision.
func (s *Session) EndTrace() {
	r := s.Trace
	if s.Trace = nil; r.Commands > 0 {
		r.Replied = time.Now()
		s.srv.cfg.Tracer.Trace(*r)
	}
}
