package service

import (
	"strconv"

	"github.com/weir-project/weir/limiter"
)

// What a node that does not lead does with operations; see Config.Redirect.
const (
	RedirectForward = "forward"
	RedirectMoved   = "moved"
)

// Elsewhere is the error of operations that this node leaves to the leader, with
// the leader's address as a client writes it after MOVED.
type Elsewhere string

func (e Elsewhere) Error() string { return "the leader is " + string(e) }

// Redirect says whether this node carries operations out: nil, or an elsewhere,
// or ErrClusterDown. A leader whose address is not yet known is none to send
// clients to: their operations are then forwarded.
func (s *Service) Redirect() error {
	if s.Replica == nil || !s.Redirects {
		return nil
	}
	t := s.Replica.Topology()
	switch {
	case t.Leader == "":
		return limiter.ErrClusterDown
	case t.Leads():
		return nil
	}
	return LeaderElsewhere(t)
}

// LeaderElsewhere is nil when the leader's address is not known.
func LeaderElsewhere(t *limiter.Topology) error {
	if host, port, ok := t.Member(t.Leader).HostPort(); ok {
		return Elsewhere(RedisAddr(host, port))
	}
	return nil
}

// RedisAddr joins host and port as Redis does, without brackets.
func RedisAddr(host string, port int) string { return host + ":" + strconv.Itoa(port) }

// OnlyLeader is for what only the leader knows, however this node treats decisions:
// nil on the leader or a node that stands alone, else an elsewhere or ErrClusterDown.
func (s *Service) OnlyLeader() error {
	if s.Replica == nil {
		return nil
	}
	t := s.Replica.Topology()
	if t.Leads() {
		return nil
	}
	if err := LeaderElsewhere(t); err != nil {
		return err
	}
	return limiter.ErrClusterDown
}
