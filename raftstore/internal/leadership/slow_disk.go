package leadership

import "time"
import "github.com/weir-project/weir/raftstore/internal/timers"

const (
	// slowAppend is longer than an append takes on any healthy disk. slowerThan is how
	// many times slower the leader's disk must be than another's to hand leadership over.
	slowAppend = 100 * time.Millisecond
	slowerThan = 4
	// slowFor is how long that must last: each member tells its median once a second.
	slowFor = 2 * timers.StatusEvery
)

// slowDisk decides when a leader leaves because of its disk.
type slowDisk struct {
	since time.Time // the disk has been much slower than another's since then; zero: it is not
	moved time.Time // when leadership was last handed over for this
}

// leaves takes the median append of this leader and of the fastest other member, 0 if it
// is not known. It returns true when this disk has been much slower for slowFor: by then
// the others have told if theirs became slow as well. It does not return true again within
// handOverAgain, so that nodes with slow disks do not pass leadership round.
func (s *slowDisk) leaves(mine, theirs time.Duration) bool {
	if theirs == 0 || mine < slowAppend || mine < slowerThan*theirs {
		s.since = time.Time{}
		return false
	}
	if s.since.IsZero() {
		s.since = time.Now()
	}
	if time.Since(s.since) < slowFor || time.Since(s.moved) < handOverAgain {
		return false
	}
	s.since, s.moved = time.Time{}, time.Now()
	return true
}

// leaveSlowDisk hands leadership to the member with the fastest disk when this leader's
// disk is much slower: all nodes append the same entries, and each decision waits for the
// leader's append.
func (l *Leadership) leaveSlowDisk(s *slowDisk) {
	var mine, theirs time.Duration
	var to string
	if l.Current.Load() != nil {
		mine = l.Logs.Times.Median()
		to, theirs = l.fastestDisk()
	}
	if !s.leaves(mine, theirs) {
		return
	}
	l.Log.Warn("the disk of this leader is slow; handing leadership to a node with a faster one", "to", to, "append",
		mine, "append_there", theirs)
	if err := l.Transfer(to); err != nil {
		l.Log.Error("leadership could not be handed over", "to", to, "error", err)
	}
}

// fastestDisk returns the voter that is up and appends fastest, and its median append; 0
// if no member has told one.
func (l *Leadership) fastestDisk() (id string, took time.Duration) {
	for _, m := range *l.Peers.Members.Load() {
		last, heard := l.Peers.Last(m.ID)
		theirs := time.Duration(last.AppendNs)
		if m.Voter && m.Up && heard && theirs > 0 && (took == 0 || theirs < took) {
			id, took = m.ID, theirs
		}
	}
	return id, took
}
