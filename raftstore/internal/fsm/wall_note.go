package fsm

import (
	"encoding/json"
	"time"

	"github.com/weir-project/weir/internal/guards"
)

// WallNote is a leader's record of the voters' wall clocks, in a Tick. After a cold start, each voter's own clock
// then tells how much time has passed, even if the clock is wrong by a constant.
type WallNote struct {
	Term uint64 // term of the leader that made the note
	AtNs int64  // limiter time of the note
	// AheadNs is, by node id, an upper bound of the node's wall clock minus limiter time.
	AheadNs map[string]int64
}

const (
	// wallNoteLifetime bounds the age of a note that counts after a cold start: long enough that
	// several notes may be missed.
	wallNoteLifetime = 15 * time.Second
)

// noted stores the note of a Tick in the state. It must not fail, because a newer leader may write
// more.
func (s *State) noted(body []byte) {
	var ahead map[string]int64
	if len(body) == 0 || json.Unmarshal(body, &ahead) != nil {
		return
	}
	s.Walls = &WallNote{Term: s.Term, AtNs: s.At.NowNs, AheadNs: ahead}
}

// CurrentWalls returns the newest note, or nil if it is too old for the last entry.
func (s *State) CurrentWalls() *WallNote {
	if s.Walls == nil || s.At.NowNs-s.Walls.AtNs > int64(wallNoteLifetime) {
		return nil
	}
	return s.Walls
}

// dropOldNote removes a note of another term than the state's. Limiter time that a failover lost after the note would
// otherwise count as downtime. A void entry has no stamp, so it leaves the note in force.
func (s *State) dropOldNote() {
	if s.Walls != nil && s.Walls.Term != s.Term {
		guards.OldNote.Hit()
		s.Walls = nil
	}
}
