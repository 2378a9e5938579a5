package raftstore

import (
	"encoding/json"
	"time"
)

// wallNote is what a leader noted of the members' wall clocks, in a Tick. After a
// cold start each member's own clock then says how much time has passed: a clock
// that is wrong by a constant is right about that.
type wallNote struct {
	Term uint64 // in which it was noted
	AtNs int64  // limiter time of the note
	// AheadNs is by how much the wall clock of a node, by its id, was at most ahead of
	// limiter time.
	AheadNs map[string]int64
}

const (
	// noteEvery is how often a busy leader notes the wall clocks; an idle one does it
	// with each tick. What steps a wall clock in between is taken for passed time if
	// the whole cluster stops right after.
	noteEvery = 2 * time.Second
	// noteLife is how old a note may be that counts after a cold start: several notes
	// may be missed, and no pause of a whole cluster goes unnoticed for long.
	noteLife = 15 * time.Second
)

// noteWalls returns the body of a Tick. An older weir reads none.
func (n *Node) noteWalls(r *reign) []byte {
	n.lastNote.Store(int64(n.uptime()))
	if n.testClock {
		return nil
	}
	limiterNs, rawNs := r.clock.Now().NowNs, n.source.MonotonicNs()
	note := wallNote{AheadNs: map[string]int64{}}
	for _, id := range n.voters() {
		if id == n.options.NodeID {
			note.AheadNs[id] = n.source.WallNs() - limiterNs
		} else if h, ok := n.peers.last(id); ok && time.Since(h.at) < 3*statusEvery {
			note.AheadNs[id] = h.wallNow(rawNs) - limiterNs
		}
	}
	body, err := json.Marshal(note.AheadNs)
	if err != nil {
		panic(err) // strings and integers always encode
	}
	return body
}

// noted takes the note of a Tick over. It must not fail: an older leader writes none,
// and a newer one may write more.
func (s *state) noted(body []byte) {
	var ahead map[string]int64
	if len(body) == 0 || json.Unmarshal(body, &ahead) != nil {
		return
	}
	s.Walls = &wallNote{Term: s.Term, AtNs: s.At.NowNs, AheadNs: ahead}
}

// walls returns the note that was made last, or nil when it is too old to say how
// limiter time and wall clocks stood at the last entry. Time that a failover lost in
// between would count twice, so a note is of its own term only.
func (s *state) walls() *wallNote {
	if s.Walls == nil || s.Walls.Term != s.Term || s.At.NowNs-s.Walls.AtNs > int64(noteLife) {
		return nil
	}
	return s.Walls
}
