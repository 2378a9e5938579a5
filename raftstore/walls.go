package raftstore

import (
	"encoding/json"
	"time"

	"github.com/weir-project/weir/internal/guards"
)

// wallNote is a leader's record of the voters' wall clocks, in a Tick. After a cold start
// each voter's own clock then tells how much time has passed, even a clock that is wrong
// by a constant.
type wallNote struct {
	Term uint64 // in which it was noted
	AtNs int64  // limiter time of the note
	// AheadNs is, by node id, an upper bound of how far a wall clock was ahead of limiter
	// time.
	AheadNs map[string]int64
}

const (
	// noteEvery is how often a busy leader notes the wall clocks; an idle leader does it
	// with each tick. A step of a wall clock after the last note counts as time that passed
	// if the whole cluster then stops.
	noteEvery = 2 * time.Second
	// noteLife bounds the age of a note that counts after a cold start: long enough that
	// several notes may be missed.
	noteLife = 15 * time.Second
)

// noteWalls returns the body of a Tick. An older weir ignores it.
func (l *leadership) noteWalls(r *leaderTerm) []byte {
	l.lastNote.Store(int64(l.uptime()))
	if l.testClock {
		return nil
	}
	limiterNs, rawNs := r.clock.Now().NowNs, l.source.MonotonicNs()
	note := wallNote{AheadNs: map[string]int64{}}
	for _, id := range l.raft.voters() {
		if id == l.options.NodeID {
			note.AheadNs[id] = l.source.WallNs() - limiterNs
		} else if h, ok := l.peers.last(id); ok && time.Since(h.at) < 3*statusEvery {
			note.AheadNs[id] = h.wallNow(rawNs) - limiterNs
		}
	}
	body, err := json.Marshal(note.AheadNs)
	if err != nil {
		panic(err) // strings and integers always encode
	}
	return body
}

// noted stores the note of a Tick in the state. It must not fail: an older leader writes
// no note, and a newer one may write more.
func (s *state) noted(body []byte) {
	var ahead map[string]int64
	if len(body) == 0 || json.Unmarshal(body, &ahead) != nil {
		return
	}
	s.Walls = &wallNote{Term: s.Term, AtNs: s.At.NowNs, AheadNs: ahead}
}

// walls returns the newest note, or nil if it is too old for the last entry. A note counts
// in its own term only: limiter time that a failover lost after the note would be taken
// for downtime.
func (s *state) walls() *wallNote {
	switch {
	case s.Walls == nil || s.At.NowNs-s.Walls.AtNs > int64(noteLife):
		return nil
	case s.Walls.Term != s.Term:
		guards.OldNote.Hit()
		return nil
	}
	return s.Walls
}
