package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/script"
	"github.com/weir-project/weir/engine/internal/store"
)

// refusals maps the refusals of scripts to statuses.
var refusals = [...]Status{
	script.Accepted: OK, script.WrongType: WrongType, script.NotInteger: NotInteger, script.Overflow: Overflow,
	script.KeyBlocked: KeyBlocked, script.ValueTooLong: ValueTooLong,
}

// script carries out OpScript.
func (s *shard) script(c *store.Cell, op *Op, d *Decision) bool {
	run := script.NewRun(s.NowNs, op.Script, &s.Slab, s.scriptBuffer)
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
	s.scriptBuffer = run.Buffer()
	if d.Status != OK {
		return false
	}
	changed := s.applyRun(c, &run, d)
	if d.Status != OK {
		return false
	}
	a := &run.Answer
	*d = Decision{
		Allowed: arith.OneIf(run.Admitted), Remaining: a[0], RetryMs: a[1], ResetMs: a[2], Limit: a[3], Value: run.Said,
	}
	s.tally(Scripted, c, op, 1, d) // scripts do not report how many units they take
	return changed
}

// scriptState returns the state of a cell that scripts keep, or nil for any other cell.
func scriptState(c *store.Cell) []byte {
	if c.Live && c.Entry.Kind() == uint8(Scripted) {
		return c.Entry.State()
	}
	return nil
}

// applyRun stores the result of a run in the cell's entry, and reports whether the entry changed.
func (s *shard) applyRun(c *store.Cell, run *script.Run, d *Decision) bool {
	switch {
	case run.Effect == script.Looked, run.Effect == script.Deleted && !c.Live:
		return false
	case run.Effect == script.Deleted:
		s.Drop(c)
		return true
	case !s.storeRun(c, run):
		d.Status = OutOfMemory
		return false
	}
	c.Relink = true
	s.Touched(c)
	return true
}

// storeRun stores a run's record in the cell's entry, and allocates the memory of its bytes.
func (s *shard) storeRun(c *store.Cell, run *script.Run) bool {
	room := func(n int) bool { return s.AdmitBytes(n, c.Ref) }
	if !run.Prepare(scriptState(c), room) || !s.Ensure(c, uint8(Scripted), store.StateLens[Scripted]) {
		run.Discard()
		return false
	}
	run.Store(c.Entry.State())
	return true
}
