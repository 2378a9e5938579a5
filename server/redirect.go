package server

import (
	"strconv"

	"github.com/weir-project/weir/limiter"
)

// What a node that does not lead does with operations; see Config.Redirect.
const (
	RedirectForward = "forward"
	RedirectMoved   = "moved"
)

// elsewhere is the error of operations that this node leaves to the leader, with
// the leader's address as a client writes it after MOVED.
type elsewhere string

func (e elsewhere) Error() string { return "the leader is " + string(e) }

// redirect says whether this node carries operations out: nil, or an elsewhere,
// or ErrClusterDown. A leader whose address is not yet known is none to send
// clients to: their operations are then forwarded.
func (s *service) redirect() error {
	if s.replica == nil || !s.redirects {
		return nil
	}
	t := s.replica.Topology()
	switch {
	case t.Leader == "":
		return limiter.ErrClusterDown
	case t.Leads():
		return nil
	}
	return leaderElsewhere(t)
}

// leaderElsewhere is nil when the leader's address is not known.
func leaderElsewhere(t *limiter.Topology) error {
	if host, port, ok := t.Member(t.Leader).HostPort(); ok {
		return elsewhere(redisAddr(host, port))
	}
	return nil
}

// redisAddr joins host and port as Redis does, without brackets.
func redisAddr(host string, port int) string { return host + ":" + strconv.Itoa(port) }

// onlyLeader is for what only the leader knows, however this node treats decisions:
// nil on the leader or a node that stands alone, else an elsewhere or ErrClusterDown.
func (s *service) onlyLeader() error {
	if s.replica == nil {
		return nil
	}
	t := s.replica.Topology()
	if t.Leads() {
		return nil
	}
	if err := leaderElsewhere(t); err != nil {
		return err
	}
	return limiter.ErrClusterDown
}
