package server

import "errors"

// Reads in a cluster. A leader reads what is linearizable: it first has its
// leadership confirmed, once for a run of reads that arrived together. Any other
// node reads its own state and says how old that may be.

// fresh prepares for a read. The error, if there is one, is the command's answer.
func (s *session) fresh() error {
	r := s.srv.replica
	if r == nil || s.confirmed {
		return nil
	}
	s.staleMs = 0
	if r.Topology().leads() {
		err := r.Confirm()
		if !errors.Is(err, ErrNotLeader) {
			s.confirmed = err == nil
			return err
		}
	}
	s.staleMs = ceilMs(r.StaleFor()) // before the read: what is read is no older
	return nil
}

// staleFields is how many fields stale adds to a map.
func (s *session) staleFields() int { return int(oneIf(s.srv.replica != nil)) }

// stale ends a map that describes what was read; nothing where there is only one
// node.
func (s *session) stale() {
	if s.srv.replica != nil {
		s.pairInt("stale_ms", s.staleMs)
	}
}
