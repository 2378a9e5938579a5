package leadership

import (
	"encoding/json"
	"time"

	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

const (
	// noteEvery is how often a busy leader records the wall clocks. An idle leader does it with each tick. If the whole
	// cluster stops, a step of a wall clock after the last note counts as time that passed.
	noteEvery = 2 * time.Second
)

// NoteWalls returns the body of a Tick: the leader's note of the voters' wall clocks. An older weir ignores it.
func (l *Leadership) NoteWalls(r *Term) []byte {
	l.lastNote.Store(int64(l.Uptime()))
	if l.TestClock {
		return nil
	}
	limiterNs, rawNs := r.Clock.Now().NowNs, l.Source.MonotonicNs()
	note := fsm.WallNote{AheadNs: map[string]int64{}}
	for _, id := range l.Raft.Voters() {
		if id == l.Options.NodeID {
			note.AheadNs[id] = l.Source.WallNs() - limiterNs
		} else if h, ok := l.Peers.Last(id); ok && time.Since(h.At) < 3*timers.StatusEvery {
			note.AheadNs[id] = h.WallNow(rawNs) - limiterNs
		}
	}
	body, err := json.Marshal(note.AheadNs)
	if err != nil {
		panic(err) // strings and integers always encode
	}
	return body
}
