package commands

import (
	"slices"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/service"
)

// Reads in a cluster are linearizable on every node. Before a node reads its own state, it waits until it has applied
// every entry that was acknowledged anywhere (ReadIndex). One ReadIndex serves a run of reads that arrived together.
// READONLY selects stale reads for a connection. Stale reads ask no other node, work without a leader, and report an
// upper bound of their age.
//
// With several Raft groups a read depends on the groups of its keys only (readGroups). A read without a key depends on
// all groups.

// confirmed is what the ReadIndexes of a run of reads cover.
type confirmed struct {
	whole  bool  // the whole state
	groups []int // the state of these groups, if not whole
}

// EndReads ends a run of reads. The next read needs a new ReadIndex.
func (s *Session) EndReads() {
	s.confirmed.whole, s.confirmed.groups = false, s.confirmed.groups[:0]
}

// fresh prepares for a read: by a ReadIndex, or for a stale read by noting the age of the state. A non-nil error is the
// answer to the command.
func (s *Session) fresh(cmd *command, args [][]byte) error {
	r := s.srv.Replica
	if r == nil || s.confirmed.whole {
		return nil
	}
	if by, ok := r.(limiter.GroupReader); ok {
		if t := r.Topology(); t.Groups != nil {
			if groups, some := s.readGroups(t, cmd, args); some {
				return s.freshGroups(by, t, groups)
			}
		}
	}
	if s.readonly {
		s.staleMs = service.CeilMs(r.StaleFor()) // taken before the read, so the state that is read is not older
		return nil
	}
	s.staleMs = 0
	err := r.ReadIndex()
	s.confirmed.whole = err == nil
	return err
}

// freshGroups is fresh for a read that depends on some groups.
func (s *Session) freshGroups(by limiter.GroupReader, t *limiter.Topology, groups []int) error {
	s.staleMs = 0
	for _, g := range groups {
		slot := t.Groups[g].Slots.First
		if s.readonly {
			s.staleMs = max(s.staleMs, service.CeilMs(by.StaleForOf(slot)))
			continue
		}
		if slices.Contains(s.confirmed.groups, g) {
			continue
		}
		if err := by.ReadIndexOf(slot); err != nil {
			return err
		}
		s.confirmed.groups = append(s.confirmed.groups, g)
	}
	return nil
}

// staleFields returns how many fields stale adds to a map.
func (s *Session) staleFields() int { return int(oneIf(s.srv.Replica != nil)) }

// stale adds stale_ms, the last field of a map that describes a read. A server without a cluster adds nothing.
func (s *Session) stale() {
	if s.srv.Replica != nil {
		s.PairInt("stale_ms", s.staleMs)
	}
}

// absent answers an empty map for a key without a limiter. A stale read reports its age here as well, because the
// limiter may have been created since.
func (s *Session) absent() {
	if s.srv.Replica == nil || !s.readonly {
		s.Map(0)
		return
	}
	s.Map(1)
	s.stale()
}

// setReadonly begins or ends stale reads.
func (s *Session) setReadonly(on bool) {
	s.readonly = on
	s.EndReads()
	s.about.Update(func(i *service.Client) { i.Readonly = on })
}

func runReadonly(s *Session, _ [][]byte) {
	s.setReadonly(true)
	s.OK()
}

func runReadwrite(s *Session, _ [][]byte) {
	s.setReadonly(false)
	s.OK()
}
