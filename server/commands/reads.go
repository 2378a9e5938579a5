package commands

import (
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/service"
)

// READONLY selects stale reads for a connection: see limiter.Reader. Such reads report an upper bound of their age.

// read runs a command that reads limiters. If a group cannot be read, it answers the error in place of all that the
// command has written.
func (s *Session) read(cmd *command, args [][]byte) {
	if !s.guarded(s.redirectedRead(args)) {
		return
	}
	s.answerAt = s.Len()
	err := s.reads.Read(func(t *limiter.Topology) ([]int, bool) {
		groups := scope{Topology: t}
		some := cmd.read.scope != nil && cmd.read.scope(s, args, &groups)
		return groups.groups, !some
	}, func(v limiter.View, age time.Duration) {
		s.staleMs = service.CeilMs(age)
		cmd.read.run(s, v, args)
	})
	if err != nil {
		s.Truncate(s.answerAt)
		s.fail(err)
	}
}

// redirectedRead returns a MOVED reply if this node redirects a command that reads keys, else nil. A transaction has
// been redirected before, or executes here as a whole.
func (s *Session) redirectedRead(args [][]byte) error {
	if s.srv.Replica == nil || !s.redirects() || s.executing || s.srv.Replica.Topology().Replicas == 0 {
		return nil
	}
	if keys, _, _ := keysIn(s.srv, args); len(keys) > 0 && !s.isBlacklist(keys[0]) {
		return s.srv.RedirectRead(keys[0])
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
	if s.srv.Replica == nil || !s.reads.Stale {
		s.Map(0)
		return
	}
	s.Map(1)
	s.stale()
}

// setReadonly begins or ends stale reads.
func (s *Session) setReadonly(on bool) {
	s.reads.Stale = on
	s.reads.End()
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
