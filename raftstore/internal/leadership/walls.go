package leadership

import (
	"encoding/json"
	"time"

	"github.com/weir-project/weir/raftstore/internal/fsm"
)

const (
	// noteEvery is how often a busy leader records the wall clocks. An idle leader does it with each tick. If the whole
	// cluster stops, a step of a wall clock after the last note counts as time that passed.
	noteEvery = 2 * time.Second
	// heardWithin bounds how long ago a voter may have been heard that a note still names. The voters that were stopped
	// first in a stop of all nodes must be named: after the next start they may be the majority that answers.
	heardWithin = time.Hour
)

// NoteWalls returns the body of a Tick: the leader's note of the voters' wall clocks.
func (l *Leadership) NoteWalls(r *Term) []byte {
	l.lastNote.Store(int64(l.Life.Uptime()))
	if l.TestClock {
		return nil
	}
	limiterNs, rawNs := r.Clock.Now().NowNs, l.Source.MonotonicNs()
	note := fsm.WallNote{AheadNs: map[string]int64{}}
	for _, id := range l.Raft.Voters() {
		if id == l.Self {
			note.AheadNs[id] = l.Source.WallNs() - limiterNs
		} else if h, ok := l.Peers.Last(id); ok && time.Since(h.At) < heardWithin {
			note.AheadNs[id] = h.WallNow(rawNs) - limiterNs
		}
	}
	body, err := json.Marshal(note.AheadNs)
	if err != nil {
		panic(err) // strings and integers always encode
	}
	return body
}
