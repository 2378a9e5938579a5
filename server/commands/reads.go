package commands

import "github.com/weir-project/weir/server/service"

// Reads in a cluster are linearizable on every node: before a node reads its own state it
// waits until it has applied what was acknowledged anywhere (ReadIndex), once for a run
// of reads that arrived together. READONLY opts a connection into stale reads: they ask no
// other node, work without a leader, and tell how old they may be.

// fresh prepares for a read. The error, if there is one, is the command's answer.
func (s *Session) fresh() error {
	r := s.srv.Replica
	if r == nil || s.Confirmed {
		return nil
	}
	if s.readonly {
		s.staleMs = service.CeilMs(r.StaleFor()) // before the read: what is read is no older
		return nil
	}
	s.staleMs = 0
	err := r.ReadIndex()
	s.Confirmed = err == nil
	return err
}

// staleFields is how many fields stale adds to a map.
func (s *Session) staleFields() int { return int(oneIf(s.srv.Replica != nil)) }

// stale ends a map that describes what was read; nothing where there is only one
// node.
func (s *Session) stale() {
	if s.srv.Replica != nil {
		s.PairInt("stale_ms", s.staleMs)
	}
}

// absent answers a map for a key without a limiter: an empty one. A stale read tells its
// age here as well, because the limiter may have been made since.
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
	s.readonly, s.Confirmed = on, false
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
