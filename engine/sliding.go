package engine

import (
	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
	"github.com/weir-project/weir/engine/internal/unitlog"
)

// openLog reads the log of a live entry and counts its units within windowNs, the window of the operation.
// Unless it runs within a look, it drops the units that have left the window of the limit in force. They have
// expired, and no answer depends on them.
func openLog(s *store.Store, c *store.Cell, windowNs int64) (log unitlog.Log, units int64) {
	if !c.Live {
		return unitlog.Log{}, 0
	}
	log = unitlog.Read(c.Entry.State())
	oldNs := s.Limits.At(c.Entry.Limit()).WindowNs
	if s.Looking {
		return log, log.Units - log.UnitsUntil(&s.Slab, s.NowNs-min(windowNs, oldNs))
	}
	log.DropUntil(&s.Slab, s.NowNs-oldNs)
	log.Write(c.Entry.State())
	if windowNs >= oldNs {
		return log, log.Units
	}
	return log, log.Units - log.UnitsUntil(&s.Slab, s.NowNs-windowNs)
}

func takeSliding(s *store.Store, c *store.Cell, op *Op, d *Decision) bool {
	windowNs := op.Limit.WindowNs
	log, used := openLog(s, c, windowNs)
	grant, ok := admit(op, used, d)
	newestNs := log.LastNs
	if grant > 0 {
		newestNs = s.NowNs
	}
	if used+grant > 0 {
		d.ResetMs = arith.NsToMs(newestNs + windowNs - s.NowNs)
	}
	if !ok {
		d.RetryMs = slidingRetryMs(s, &log, used, op)
	}
	if !ok && putInForce(s, c, op, d) {
		return false
	}
	if grant == 0 || op.Dry || !ensureLimiter(s, c, op, d, log.Growth(&s.Slab, s.NowNs, grant)) {
		return false
	}
	recordUnits(s, c, windowNs, grant)
	s.Touched(c)
	return true
}

// slidingRetryMs returns the time until enough of the oldest units have left the window.
func slidingRetryMs(s *store.Store, log *unitlog.Log, used int64, op *Op) int64 {
	if !op.canFit() {
		return -1
	}
	leaving := used + op.want() - op.Limit.Max
	outside := log.Units - used // older than this operation's window
	return arith.NsToMs(log.TimeOf(&s.Slab, outside+leaving) + op.Limit.WindowNs - s.NowNs)
}

// recordUnits appends units to the log of an entry. The log keeps the newest MaxLogUnits; no limit can
// distinguish it from a longer log.
func recordUnits(s *store.Store, c *store.Cell, windowNs, units int64) {
	st := c.Entry.State()
	log := unitlog.Read(st)
	log.DropUntil(&s.Slab, s.NowNs-windowNs)
	log.Append(&s.Slab, s.NowNs, units)
	log.DropOldest(&s.Slab, log.Units-MaxLogUnits)
	log.Write(st)
}

// keepNewest shortens the log of an entry to its newest units, at least one.
func keepNewest(s *store.Store, c *store.Cell, units int64) {
	st := c.Entry.State()
	log := unitlog.Read(st)
	units = max(units, 1)
	if log.Units <= units {
		return
	}
	log.DropOldest(&s.Slab, log.Units-units)
	log.ForgetKept() // otherwise the next Drain would append to a stored log that still has the dropped units
	log.Write(st)
}
