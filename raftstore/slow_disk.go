package raftstore

import (
	"slices"
	"sync"
	"time"
)

const (
	// recentAppends are the appends whose median says how fast a disk is: one hiccup does
	// not move it, and a disk that became slow is known after five appends.
	recentAppends = 9
	// slowAppend is slower than any disk that is in order, slowerThan how many times
	// slower the leader's disk must be than another's to hand leadership over.
	slowAppend = 100 * time.Millisecond
	slowerThan = 4
	// slowFor is how long that must be so: every member says how fast it is once a second.
	slowFor = 2 * statusEvery
)

// appendTimes are how long the last appends took. The zero value is ready.
type appendTimes struct {
	mu   sync.Mutex
	last [recentAppends]time.Duration
	n    int // appends so far
}

func (a *appendTimes) add(took time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[a.n%recentAppends] = took
	a.n++
}

// median is 0 until there have been enough appends.
func (a *appendTimes) median() time.Duration {
	a.mu.Lock()
	last, n := a.last, a.n
	a.mu.Unlock()
	if n < recentAppends {
		return 0
	}
	slices.Sort(last[:])
	return last[recentAppends/2]
}

// slowDisk decides when a leader leaves because of its disk.
type slowDisk struct {
	since time.Time // the disk has been much slower than another's since then; zero: it is not
	moved time.Time // when leadership was last handed over for this
}

// leaves takes note of how fast this leader's disk is and the fastest of the others, 0
// where that is not known. It returns true when this one has been much slower for
// slowFor, so that others on disks that became slow as well have said so, and not within
// handOverAgain, so that slow disks do not pass leadership round.
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
func (n *Node) leaveSlowDisk(s *slowDisk) {
	var mine, theirs time.Duration
	var to string
	if n.reign.Load() != nil {
		mine = n.logs.times.median()
		to, theirs = n.fastestDisk()
	}
	if !s.leaves(mine, theirs) {
		return
	}
	n.log.Warn("the disk of this leader is slow; handing leadership to a node with a faster one", "to", to, "append", mine, "append_there", theirs)
	if err := n.transfer(to); err != nil {
		n.log.Error("leadership could not be handed over", "to", to, "error", err)
	}
}

// fastestDisk returns the member that votes, is up and appends fastest; 0: no member has
// said how fast it does.
func (n *Node) fastestDisk() (id string, took time.Duration) {
	for _, m := range *n.members.Load() {
		last, heard := n.peers.last(m.ID)
		theirs := time.Duration(last.AppendNs)
		if m.Voter && m.Up && heard && theirs > 0 && (took == 0 || theirs < took) {
			id, took = m.ID, theirs
		}
	}
	return id, took
}
