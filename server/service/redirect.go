package service

import (
	"strconv"

	"github.com/weir-project/weir/limiter"
)

// Values of Config.Redirect.
const (
	RedirectForward = "forward"
	RedirectMoved   = "moved"
)

// Elsewhere is the error for operations that this node leaves to the leader. Its text is the leader's address as MOVED
// sends it.
type Elsewhere string

func (e Elsewhere) Error() string { return "the leader is " + string(e) }

// Redirect returns nil if this node executes operations, else an Elsewhere or ErrClusterDown. While the leader's
// address is unknown it returns nil, and the operations are forwarded.
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

// LeaderElsewhere returns an Elsewhere with the leader's address, or nil if the address is unknown.
func LeaderElsewhere(t *limiter.Topology) error {
	if host, port, ok := t.Member(t.Leader).HostPort(); ok {
		return Elsewhere(RedisAddr(host, port))
	}
	return nil
}

// RedisAddr joins host and port as Redis does, without brackets.
func RedisAddr(host string, port int) string { return host + ":" + strconv.Itoa(port) }

// OnlyLeader guards state that only the leader has, independent of Redirects. It returns nil on the leader and on a
// server that runs alone. Otherwise it returns an Elsewhere or ErrClusterDown.
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
