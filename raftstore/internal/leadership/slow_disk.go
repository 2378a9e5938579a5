package leadership

import "time"
import "github.com/weir-project/weir/raftstore/internal/timers"

const (
	// slowAppend is longer than an append takes on any healthy disk. A leader transfers leadership only if its disk is
	// slowerThan times slower than another member's disk.
	slowAppend = 100 * time.Millisecond
	slowerThan = 4
	// slowFor is how long the leader's disk must be that slow. Each member reports its median append once a second.
	slowFor = 2 * timers.StatusEvery
)

// slowDisk decides when a leader transfers leadership because of its disk.
type slowDisk struct {
	since time.Time // start of the time in which the disk is much slower than another; zero: it is not
	moved time.Time // time of the last transfer for this reason
}

// leaves takes the median time of an append of this leader and of the fastest other member. theirs is 0 if no member
// has reported one. It returns true when this disk has been much slower for slowFor. By then, the other members have
// reported whether their disks became slow as well. It does not return true again within handOverAgain, so that nodes
// with slow disks do not keep passing leadership on.
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

// leaveSlowDisk begins a transfer of leadership to the member with the fastest disk if this leader's disk is much
// slower. All nodes append the same entries, and each decision waits for the leader's append.
func (l *Leadership) leaveSlowDisk(s *slowDisk) {
	var mine, theirs time.Duration
	var to string
	if l.Current.Load() != nil {
		mine = l.AppendTime()
		to, theirs = l.fastestDisk()
	}
	if !s.leaves(mine, theirs) {
		return
	}
	l.Log.Warn("the disk of this leader is slow; transferring leadership to a node with a faster disk", "to", to,
		"append",
		mine, "append_there", theirs)
	l.leaving.Go(l.Life.Go, func() {
		if err := l.Transfer(to); err != nil {
			l.Log.Error("leadership transfer failed", "to", to, "error", err)
		}
	})
}

// fastestDisk returns the running voter with the fastest appends, and the median time of its appends. took is 0 if no
// such voter has reported one.
func (l *Leadership) fastestDisk() (id string, took time.Duration) {
	for _, m := range l.Members() {
		last, heard := l.Peers.Last(m.ID)
		theirs := time.Duration(last.AppendNs)
		if m.Voter && m.Up && heard && theirs > 0 && (took == 0 || theirs < took) {
			id, took = m.ID, theirs
		}
	}
	return id, took
}
