package raftstore

import (
	"encoding/json"
	"time"

	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

const (
	// noteEvery is how often a busy leader notes the wall clocks; an idle leader does it
	// with each tick. A step of a wall clock after the last note counts as time that passed
	// if the whole cluster then stops.
	noteEvery = 2 * time.Second
)

// noteWalls returns the body of a Tick. An older weir ignores it.
func (l *leadership) noteWalls(r *leaderTerm) []byte {
	l.lastNote.Store(int64(l.uptime()))
	if l.testClock {
		return nil
	}
	limiterNs, rawNs := r.clock.Now().NowNs, l.source.MonotonicNs()
	note := fsm.WallNote{AheadNs: map[string]int64{}}
	for _, id := range l.raft.Voters() {
		if id == l.options.NodeID {
			note.AheadNs[id] = l.source.WallNs() - limiterNs
		} else if h, ok := l.peers.last(id); ok && time.Since(h.at) < 3*timers.StatusEvery {
			note.AheadNs[id] = h.wallNow(rawNs) - limiterNs
		}
	}
	body, err := json.Marshal(note.AheadNs)
	if err != nil {
		panic(err) // strings and integers always encode
	}
	return body
}
