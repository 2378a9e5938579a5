package leadership

import (
	"context"
	"slices"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// A cold start is the election of a leader when no voter that answers was running when the last entry was written:
// the whole cluster was down. No monotonic clock then covers the time since, so the wall clocks of a majority do.
// persistence.Downtime defines the rule.

// resumeClock returns the clock of a new leader. The clock continues from the last stamp, plus the time since that
// entry arrived here. That is never more than the time that has really passed. If this node was down since then,
// resume also asks the other voters.
func (l *Leadership) resumeClock() persistence.Clock {
	s, last := l.FSM.LastArrival()
	if s.At.NowNs == 0 || l.TestClock || last.Live {
		return l.ClockFrom(s.At, last.RawNs)
	}
	to := l.resume(&s, last, l.askVoters())
	return persistence.StartClock(l.Source, to)
}

// askVoters returns the status of this node and of every voter that answers within one
// heartbeat.
func (l *Leadership) askVoters() []host.Status {
	ctx, cancel := context.WithTimeout(l.Life.Ctx, l.Heartbeat)
	defer cancel()
	others := l.Peers.Askers(l.Raft.Voters())
	answers := make(chan *host.Status, len(others))
	for _, asker := range others {
		l.Life.Tasks.Go(func() {
			s, err := host.Ask(ctx, asker)
			if err != nil {
				answers <- nil
				return
			}
			answers <- &s
		})
	}
	heard := []host.Status{l.Status()}
	for range others {
		if s := <-answers; s != nil { // ctx bounds each question
			heard = append(heard, *s)
		}
	}
	return heard
}

// resume returns the stamp from which limiter time continues. It adds the longest time that any voter has held the
// last entry or, after a cold start, the time by the wall clocks.
func (l *Leadership) resume(s *fsm.State, last raftlog.Arrival, heard []host.Status) engine.Stamp {
	sinceNs := max(l.Source.MonotonicNs()-last.RawNs, 0)
	cold := true
	for _, other := range heard {
		switch h := other.Held; {
		case h.Index == last.Index:
			sinceNs, cold = max(sinceNs, h.Ns), cold && !h.Live
		case h.Index < last.Index && h.Live:
			cold = false // the voter was up before the last entry, and still is
		}
	}
	at := engine.Stamp{NowNs: s.At.NowNs + sinceNs, WallOffsetNs: s.At.WallOffsetNs}
	if !cold {
		return at
	}
	return l.coldStart(s, at, heard)
}

// coldStart returns the stamp from which limiter time continues by the wall clocks of a majority. It is never before
// at.
func (l *Leadership) coldStart(s *fsm.State, at engine.Stamp, heard []host.Status) engine.Stamp {
	quorum := len(l.Raft.Voters())/2 + 1
	if l.Faults.Has(faults.FastestWall) {
		quorum = 1
	}
	var wallsNs, passedNs []int64
	note := s.CurrentWalls()
	for _, h := range heard {
		wallsNs = append(wallsNs, h.WallNs)
		if note == nil {
			continue
		}
		if aheadNs, ok := note.AheadNs[h.NodeID]; ok {
			passedNs = append(passedNs, h.WallNs-aheadNs-s.At.NowNs)
		}
	}
	wallNs, _ := agreed(wallsNs, quorum)
	passed, known := agreed(passedNs, quorum)
	to, cut := l.Downtime.Resume(s.At, max(passed, at.NowNs-s.At.NowNs), wallNs)
	to = notBefore(to, at)
	l.reportColdStart(s.At, to, known, cut)
	return to
}

// agreed returns the greatest value that a quorum of values reaches. While a majority of the clocks is right, it never
// exceeds the true value, however far the other clocks are ahead. Without a quorum of values it returns 0 and false.
func agreed(values []int64, quorum int) (value int64, ok bool) {
	if len(values) < quorum {
		return 0, false
	}
	slices.Sort(values)
	return values[len(values)-quorum], true
}

// notBefore returns to with neither its limiter time nor its wall time before at's.
func notBefore(to, at engine.Stamp) engine.Stamp {
	wallNs := max(to.NowNs+to.WallOffsetNs, at.NowNs+at.WallOffsetNs)
	nowNs := max(to.NowNs, at.NowNs)
	return engine.Stamp{NowNs: nowNs, WallOffsetNs: wallNs - nowNs}
}

func (l *Leadership) reportColdStart(from, to engine.Stamp, known bool, cut time.Duration) {
	credit := time.Duration(to.NowNs - from.NowNs)
	windows := credit + time.Duration(to.WallOffsetNs-from.WallOffsetNs)
	l.ColdStarts.Add(1)
	l.DowntimeCredit.Add(int64(credit))
	l.Log.Info("the whole cluster was down; time continues by the wall clocks of a majority",
		"limiter_time_forward", credit, "windows_forward", windows, "max_downtime_credit", l.Downtime.Credit)
	if !known {
		l.Uncredited.Add(1)
		l.Log.Warn("the downtime of the cluster refills no limiter, because the log has no recent wall clocks of a " +
			"majority; no limit is exceeded")
	}
	if cut > 0 {
		l.Log.Warn(persistence.CutAdvice, "behind", cut, "max_calendar_step", l.Downtime.Step)
	}
}
