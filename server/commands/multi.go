package commands

import (
	"bytes"
	"errors"
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/service"
)

// maxQueuedBytes bounds the arguments that a transaction keeps until EXEC: a full batch of commands of a kilobyte each.
const maxQueuedBytes = 1 << 20

// transaction holds the commands since MULTI. Its arguments are copies, because the read buffer is reused before EXEC.
type transaction struct {
	queue  []queued
	ops    int  // operations that the queue will make, at most MaxBatch
	values int  // bytes of strings that their answers may have, at most maxBatchValues
	bytes  int  // memory of the queue
	held   int  // the part of bytes that counts in Shared.Held
	broken bool // a command was refused while queueing
}

type queued struct {
	cmd  *command
	args [][]byte
	err  error // of plan at EXEC
	ops  int
}

func multiCommands() []*command {
	commands := []*command{
		{name: "MULTI", arity: 1, summary: "Begin a transaction", run: runMulti, atOnce: true,
			details: "Commands are queued until EXEC. All decisions and changes among them then run as one atomic " +
				"step at one instant. Any " +
				"other command runs after that step. Replies come in the order of the commands. A command that is " +
				"refused while queueing makes EXEC refuse everything.\n\nIn a cluster with [several " +
				"groups](clustering.md#several-raft-groups) all keys of a transaction must be in one hash slot, and " +
				"changes of policies and blocks `EVERYWHERE` are transactions of their own. Otherwise EXEC answers " +
				"`CROSSSLOT`."},
		{name: "EXEC", arity: 1, summary: "Run the transaction", reply: "An array of the replies.",
			run: runExec, atOnce: true,
			shown: []example{{"MULTI", "OK", ""}, {"RL.TOKENBUCKET user:42 10/s 100", "QUEUED", ""},
				{"RL.FIXED org:7 FOREVER 1000", "QUEUED", ""},
				{"EXEC", "1 99 0 100 100 1 999 0 -1 1000", ""}}},
		{name: "DISCARD", arity: 1, summary: "Drop the transaction", run: runDiscard, atOnce: true},
		{name: "WATCH", arity: -2, syntax: "key [key ...]", summary: "Refused: a transaction is one atomic step",
			keys: keySpec{1, -1, 1}, atOnce: true,
			run: func(s *Session, _ [][]byte) { s.fail(errWatch) }},
		{name: "UNWATCH", arity: 1, summary: "End WATCH", noEffect: "nothing is watched",
			run: func(s *Session, _ [][]byte) { s.OK() }},
	}
	for _, cmd := range commands {
		cmd.group, cmd.flags = groupMulti, "noscript loading stale fast"
	}
	return commands
}

func runMulti(s *Session, _ [][]byte) {
	if s.tx != nil {
		s.fail(errMultiNested)
		return
	}
	s.tx = &transaction{broken: wasRefusedCaching(s)}
	s.about.Update(func(i *service.Client) { i.Queued = 0 })
	s.refresh()
	s.OK()
}

// wasRefusedCaching reports whether the last command was CLIENT CACHING, which weir refuses. MULTI then marks the
// transaction broken: some clients ignore the refusal, and would cache what the transaction reads.
func wasRefusedCaching(s *Session) bool {
	last := s.about.Last.Load()
	return last != nil && last.Full == "client|caching"
}

func runDiscard(s *Session, _ [][]byte) {
	if s.tx == nil {
		s.fail(errDiscardMulti)
		return
	}
	s.endTransaction()
	s.OK()
}

func (s *Session) endTransaction() {
	if s.tx != nil {
		s.srv.Held.Release(s.tx.held)
	}
	s.tx = nil
	s.about.Update(func(i *service.Client) { i.Queued = -1 })
	s.refresh()
}

// enqueue checks a command as far as possible before EXEC, and keeps a copy of it.
func (s *Session) enqueue(cmd *command, args [][]byte) {
	tx := s.tx
	n, values, err := rehearse(s, cmd, args)
	size := queuedCommandBytes
	for _, a := range args {
		size += len(a) + queuedArgBytes
	}
	if err == nil && (len(tx.queue) == MaxBatch || tx.ops+n > MaxBatch || tx.values+values > maxBatchValues ||
		tx.bytes+size > maxQueuedBytes) {
		err = errMultiTooLong
	}
	if err == nil && !tx.reserve(size, &s.srv.Held) {
		err = limiter.ErrOverloaded
	}
	if err != nil {
		tx.broken = true
		s.reject(cmd, err)
		return
	}
	tx.ops += n
	tx.values += values
	tx.queue = append(tx.queue, queued{cmd: cmd, args: cloneArgs(args)})
	s.about.Update(func(i *service.Client) { i.Queued = len(tx.queue) })
	s.Simple("QUEUED")
}

// reserve adds size to the bytes of the transaction. It takes the bytes beyond freeTransactionBytes from held, and
// returns false if held has too few.
func (tx *transaction) reserve(size int, held *Budget) bool {
	more := max(tx.bytes+size-freeTransactionBytes, 0) - tx.held
	if !held.Reserve(more) {
		return false
	}
	tx.bytes += size
	tx.held += more
	return true
}

// rehearse plans a command and drops its operations. It returns how many operations they are, and how many bytes of
// strings they may answer. EXEC plans the command again, because the meaning of its arguments may depend on the time.
func rehearse(s *Session, cmd *command, args [][]byte) (ops, values int, err error) {
	if cmd.plan == nil {
		return 0, 0, nil
	}
	err = s.plan(cmd, args)
	if ops, values = len(s.batch.Ops), s.batch.Values; err == nil {
		err = forKey(s.redirect(&s.batch.Ops[0]), s.batch.Ops[0].Key)
	}
	s.dropBatch()
	return ops, values, err
}

func (s *Session) dropBatch() {
	s.srv.Batches.Put(s.batch)
	s.batch = nil
}

func cloneArgs(args [][]byte) [][]byte {
	copies := make([][]byte, len(args))
	for i, a := range args {
		copies[i] = bytes.Clone(a)
	}
	return copies
}

func runExec(s *Session, _ [][]byte) {
	tx := s.tx
	if tx == nil {
		s.fail(errExecNoMulti)
		return
	}
	s.endTransaction()
	if tx.broken {
		s.fail(errExecAbort)
		return
	}
	b := s.srv.Batches.Get()
	defer s.srv.Batches.Put(b)
	s.openBatch(b)
	selected := s.database
	for i := range tx.queue {
		switch q := &tx.queue[i]; {
		case q.cmd.plan != nil:
			before := len(b.Ops)
			q.err = s.plan(q.cmd, q.args)
			q.ops = len(b.Ops) - before
		case q.cmd.Full == "select": // the operations behind it are in its database
			var database uint8
			if database, q.err = databaseArg(s.srv, q.args[1]); q.err == nil {
				s.database = database
			}
		}
	}
	s.database = selected // until the SELECT is run
	s.batch = nil
	decideAll(s, tx, b)
}

// decideAll decides the operations of a transaction in one step and answers its commands in order.
func decideAll(s *Session, tx *transaction, b *service.Batch) {
	start, ds := time.Now(), b.Decisions()
	var err error
	if len(b.Ops) > 0 {
		if err := s.redirect(&b.Ops[0]); err != nil {
			s.fail(forKey(err, b.Ops[0].Key))
			return
		}
		err = s.srv.Limiter.DecideAtomic(b.Ops, ds)
		if errors.Is(err, limiter.ErrCrossSlot) { // as in Redis, EXEC as a whole is answered with this error
			s.fail(err)
			return
		}
	}
	s.executing = true
	defer func() { s.executing = false }()
	mark, at := s.Len(), 0
	s.Array(len(tx.queue))
	for i := range tx.queue {
		q := &tx.queue[i]
		switch {
		case q.err != nil:
			s.fail(q.err)
		case q.cmd.plan == nil && s.Len()-mark > maxExecBytes && q.cmd.Full != "select":
			s.reject(q.cmd, errExecTooLong)
		case q.cmd.plan == nil:
			s.carryOut(q.cmd, q.args)
		default:
			s.answer(q.cmd, b.Ops[at:at+q.ops], ds[at:at+q.ops], err)
			at += q.ops
		}
	}
	if len(b.Queue) > 0 {
		s.srv.Account(&s.about, b, ds, err, start)
	}
}
