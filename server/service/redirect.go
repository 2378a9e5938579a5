package service

import (
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/resp"
)

// Values of Config.Redirect.
const (
	RedirectForward = "forward"
	RedirectMoved   = "moved"
)

// Elsewhere is the error for operations that this node leaves to the leader. Its value is the leader's address as
// MOVED sends it.
type Elsewhere string

func (e Elsewhere) Error() string { return "the leader is " + string(e) }

// Redirect returns nil if this node executes an operation, else a MOVED reply or ErrClusterDown. While
// the leader's address is unknown it returns nil, and the operation is forwarded. The same holds while it knows
// no leader of a group that is away, because it learns of a new leader later than the nodes that have the group.
//
// Every node executes changes of policies, which concern all groups. A node executes all operations of a command if it
// executes the first one, because a cluster client sends a command to the owner of its first key.
func (s *Service) Redirect(op *engine.Op) error {
	if s.Replica == nil || !s.Redirects {
		return nil
	}
	return s.redirect(s.Replica.Topology(), op)
}

func (s *Service) redirect(t *limiter.Topology, op *engine.Op) error {
	if op.Code == engine.OpPolicy {
		return nil
	}
	return s.redirectSlot(t, engine.SlotOf(op.Key))
}

// RedirectRead is Redirect for a read of a key. Every node serves reads of the groups that it has. A read of a group
// that is away would be served by another node: MOVED also tells a cluster client that its map is old.
func (s *Service) RedirectRead(key []byte) error {
	t, slot := s.Replica.Topology(), engine.SlotOf(key)
	if t.GroupOf(slot).Away {
		return s.redirectSlot(t, slot)
	}
	return nil
}

func (s *Service) redirectSlot(t *limiter.Topology, slot uint16) error {
	leader := t.GroupOf(slot).Leader
	if leader != t.Self {
		leader = s.Replica.LeaderOf(slot)
	}
	switch {
	case leader == t.Self, leader == "" && t.GroupOf(slot).Away:
		return nil
	case leader == "":
		return limiter.ErrClusterDown
	}
	if host, port, ok := t.Member(leader).HostPort(); ok {
		return resp.Error("MOVED " + strconv.Itoa(int(slot)) + " " + RedisAddr(host, port))
	}
	return nil
}

// DecideHere decides the operations of a batch, except those of commands that Redirect redirects. away has an error
// for each redirected command and nil for each other command. If away is nil, err applies to all commands. The
// decisions on redirected commands have a status that is not OK.
func (s *Service) DecideHere(b *Batch, ds []engine.Decision) (away []error, err error) {
	if s.Replica == nil || !s.Redirects {
		return nil, s.Limiter.Decide(b.Ops, ds)
	}
	t := s.Replica.Topology()
	at := 0
	for i := range b.Queue {
		if err := s.redirect(t, &b.Ops[at]); err != nil {
			if away == nil {
				away = make([]error, len(b.Queue))
			}
			away[i] = err
		}
		at += b.Queue[i].Ops
	}
	if away == nil {
		return nil, s.Limiter.Decide(b.Ops, ds)
	}
	return away, s.decideRest(b, ds, away)
}

// decideRest decides the operations of the commands without an error in away.
func (s *Service) decideRest(b *Batch, ds []engine.Decision, away []error) error {
	var ops []engine.Op
	var to []int // the indexes of ops in the batch
	at := 0
	for i := range b.Queue {
		for range b.Queue[i].Ops {
			if ds[at] = (engine.Decision{Status: limiter.ErrWrongGroup.Status()}); away[i] == nil {
				ops, to = append(ops, b.Ops[at]), append(to, at)
			}
			at++
		}
	}
	if len(ops) == 0 {
		return nil
	}
	out := make([]engine.Decision, len(ops))
	if err := s.Limiter.Decide(ops, out); err != nil {
		return err
	}
	for i, at := range to {
		ds[at] = out[i]
	}
	return nil
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

// OnlyLeader guards state that only the leader has, independent of Redirects. It returns nil on a node that leads a
// group, and on a server that runs alone. Otherwise it returns an Elsewhere for the leader of the first group, or
// ErrClusterDown.
func (s *Service) OnlyLeader() error {
	if s.Leads() {
		return nil
	}
	if err := LeaderElsewhere(s.Replica.Topology()); err != nil {
		return err
	}
	return limiter.ErrClusterDown
}
