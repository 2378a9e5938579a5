package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/store"
)

// ScriptAnswer is what a script answers, out of a Decision: up to four words, each a
// whole number or the bits of a double, as the script has it.
func (d *Decision) ScriptAnswer() [4]int64 {
	return [4]int64{d.Remaining, d.RetryMs, d.ResetMs, d.Limit}
}

// AnswersText reports whether the answer to an operation may have a byte string.
func (op *Op) AnswersText() bool {
	if op.Code != OpScript {
		return false
	}
	switch op.Script.ID {
	case CountGet, TextLook, TextTake, TextTouch:
		return true
	case TextSet, TextAdd:
		return arith.Truncate(op.Script.Args[0])&TextGetOld != 0
	}
	return false
}

// refusals are the statuses for what scripts refuse.
var refusals = [...]Status{
	script.Accepted: OK, script.WrongType: WrongType, script.NotInteger: NotInteger, script.Overflow: Overflow,
	script.KeyBlocked: KeyBlocked, script.ValueTooLong: ValueTooLong,
}

// script carries out OpScript.
func (s *shard) script(c *store.Cell, op *Op, d *Decision) bool {
	run := script.NewRun(s.NowNs, op.Script, &s.Slab, s.kept)
	if c.Live {
		if d.Status = refusals[run.Open(scriptState(c))]; d.Status != OK {
			return false
		}
	}
	if leftMs, blocked := s.blockedMs(c, op); blocked {
		d.Status = refusals[run.DoBlocked(leftMs)]
	} else {
		d.Status = refusals[run.Do()]
	}
	s.kept = run.Buffer()
	if d.Status != OK {
		return false
	}
	changed := s.leave(c, &run, d)
	if d.Status != OK {
		return false
	}
	a := &run.Answer
	*d = Decision{Allowed: arith.OneIf(run.Admitted), Remaining: a[0], RetryMs: a[1], ResetMs: a[2], Limit: a[3], Value: run.Said}
	s.decided.count(Scripted, run.Admitted)
	s.heavy.Weigh(s.NowNs, c.Hash, c.Key, 1, d.verdict()) // scripts do not say how many units
	return changed
}

// scriptState is the state of a cell that scripts keep; nil for one that has no such state.
func scriptState(c *store.Cell) []byte {
	if c.Live && c.Entry.Kind() == uint8(Scripted) {
		return c.Entry.State()
	}
	return nil
}

// leave makes the cell's entry what a run left behind, and reports whether it changed.
func (s *shard) leave(c *store.Cell, run *script.Run, d *Decision) bool {
	switch {
	case run.Effect == script.Looked, run.Effect == script.Deleted && !c.Live:
		return false
	case run.Effect == script.Deleted:
		s.Drop(c)
		return true
	case !s.keepRecord(c, run):
		d.Status = OutOfMemory
		return false
	}
	c.Relink = true
	s.Touched(c)
	return true
}

// keepRecord makes a run's record that of the cell's entry, and sees to its bytes.
func (s *shard) keepRecord(c *store.Cell, run *script.Run) bool {
	room := func(n int) bool { return s.AdmitBytes(n, c.Ref) }
	if !run.Prepare(scriptState(c), room) || !s.Ensure(c, uint8(Scripted), store.StateLens[Scripted]) {
		run.Discard()
		return false
	}
	run.Store(c.Entry.State())
	return true
}

// blockedMs is how long an administrative block on the key still lasts, -1 without
// end, and whether there is one.
func (s *shard) blockedMs(c *store.Cell, op *Op) (leftMs int64, blocked bool) {
	untilNs, blocked := s.blockedUntil(c.Hash, c.Key, op)
	if !blocked {
		return 0, false
	}
	return s.SpanMs(untilNs), true
}

// ValueGrows reports whether an operation on strings may take memory: for a new entry, or for
// more bytes than the key has. Of TextAppend it does not know, so that may.
func (t *Table) ValueGrows(at Stamp, op *Op) bool {
	h, s := t.find(op.Key)
	s.mu.Lock()
	defer s.unlock()
	s.look(at)
	c := store.Cell{Hash: h, Key: op.Key}
	s.Open(&c)
	if !c.Live || c.Entry.Kind() != uint8(Scripted) {
		return !c.Live // of another kind it is refused
	}
	has := script.ValueLen(c.Entry.State())
	switch texts := op.Script.ID.TextsOf(); {
	case op.Script.ID == TextDrop:
		return false
	case op.Script.ID == TextAppend:
		return true
	default:
		return len(op.Script.Values[texts-1]) > has
	}
}
