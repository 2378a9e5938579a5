package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// moveTakes is about how long a move takes without faults. Kills come within it.
	moveTakes = 3 * time.Second
	// mostKills bounds the kills during one move.
	mostKills = 3
	// movedWithin bounds a move, also while the network is faulty, and the repair of all groups of a node.
	movedWithin = 3 * time.Minute
)

// ErrNotMoved reports that a move did not end, or that it did not move the replica.
var ErrNotMoved = errors.New("a replica was not moved")

// moveReplica moves a replica of a random group to a node without one. It kills the source, the target, the leader or
// the operator's command meanwhile. Then the same command ends the move.
func (h hand) moveReplica(ctx context.Context) error {
	if err := poll(ctx, replaceTimeout, h.whole); err != nil {
		return nil // the run is over
	}
	var v move
	var leader string
	group := h.rng.IntN(h.Groups)
	if poll(ctx, replaceTimeout, func() bool {
		s, err := h.Nodes[h.anyone()].status()
		if err == nil {
			v, leader, err = s.draw(h.rng, group)
		}
		return err == nil
	}) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), movedWithin)
	defer cancel()
	victims := []*Node{h.with(v.from), h.with(v.to), h.with(leader), nil}
	for range 1 + h.rng.IntN(mostKills) {
		if err := h.interrupt(ctx, v, victims[h.rng.IntN(len(victims))]); err != nil {
			return err
		}
	}
	last := errors.New("it was not tried")
	err := poll(ctx, movedWithin, func() bool {
		_, last = h.Nodes[h.anyone()].weir(ctx, v.args()...)
		return last == nil && h.whole()
	})
	if err != nil {
		return fmt.Errorf("%w: %v: %w: %w", ErrNotMoved, v, err, last)
	}
	h.Moved.Add(1)
	return h.hasMoved(ctx, v)
}

// interrupt lets an operator move a replica, and kills a node meanwhile, or with nil the operator's command. The node
// starts again at some time before the command ends.
func (h hand) interrupt(ctx context.Context, v move, victim *Node) error {
	after, late := time.Duration(h.rng.Int64N(int64(moveTakes))), time.Duration(h.rng.Int64N(int64(h.lasts)))
	at := h.Nodes[h.anyone()]
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = at.weir(ctx, v.args()...) // it may fail, because the node that it asks may be killed
	}()
	defer func() { <-ended }()
	select {
	case <-ended:
		return nil // there is nothing left to interrupt
	case <-time.After(after):
	}
	h.Interrupted.Add(1)
	if victim == nil {
		stop()
		return nil
	}
	victim.Process().Kill()
	_ = sleep(ctx, late)
	return victim.Start()
}

// hasMoved checks that the target has a replica, and the source none.
func (h hand) hasMoved(ctx context.Context, v move) error {
	var ids []string
	err := poll(ctx, replaceTimeout, func() bool {
		s, err := h.Nodes[h.anyone()].status()
		if err != nil || v.group >= len(s.Groups) {
			return false
		}
		whole := false
		ids, _, whole = s.members(v.group, h.Replicas)
		return whole && slices.Contains(ids, v.to) && !slices.Contains(ids, v.from)
	})
	if err != nil {
		return fmt.Errorf("%w: %v: the group is on %v", ErrNotMoved, v, ids)
	}
	return nil
}

// removeReplica removes a replica from its group. Its node goes on. Then an operator's plan gives the group another.
func (h hand) removeReplica(ctx context.Context) error {
	if err := poll(ctx, replaceTimeout, h.whole); err != nil {
		return nil // the run is over: no replica may be lost while another has no vote
	}
	var id string
	group := 1 + h.rng.IntN(h.Groups-1)
	if poll(ctx, replaceTimeout, func() bool {
		s, err := h.Nodes[h.anyone()].status()
		if err != nil || group >= len(s.Groups) {
			return false
		}
		ids, _, whole := s.members(group, h.Replicas)
		if whole {
			id = ids[h.rng.IntN(len(ids))]
		}
		return whole
	}) != nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	var last error
	err := poll(ctx, replaceTimeout, func() bool {
		_, last = h.Nodes[h.anyone()].Ask(transferTimeout, "DEBUG", "REMOVE", id, strconv.Itoa(group))
		return last == nil || strings.Contains(last.Error(), "ERR no node")
	})
	if err != nil {
		return fmt.Errorf("%w: group %d is not removed from %s: %w", ErrNotReplaced, group, id, last)
	}
	_ = sleep(ctx, h.lasts)
	if err := poll(ctx, movedWithin, func() bool { last = h.repair(ctx); return last == nil }); err != nil {
		return fmt.Errorf("%w: group %d gets no replica for that of %s: %w: %w", ErrNotReplaced, group, id, err, last)
	}
	return nil
}

// errNotWhole reports that a node is down, or that a group has not as many replicas as it shall have.
var errNotWhole = errors.New("a node or a replica is missing")

// repair does what an operator does after the loss of a replica, and returns nil if each group has its replicas then. A
// plan that faults have interrupted may have left a replica too many. That one is removed first.
func (h hand) repair(ctx context.Context) error {
	if h.whole() {
		return nil
	}
	n := h.Nodes[h.anyone()]
	s, err := n.status()
	if err != nil || !s.allUp(len(h.Nodes)) {
		return errors.Join(fmt.Errorf("%w: %s sees %v", errNotWhole, n.ID, s.Nodes), err)
	}
	for group := range s.Groups {
		ids, _, _ := s.members(group, h.Replicas)
		if len(ids) > h.Replicas {
			_, err = n.weir(ctx, move{group, ids[h.rng.IntN(len(ids))], "-"}.args()...)
		}
	}
	if err == nil {
		_, err = n.carryOutPlan(ctx)
	}
	if err == nil && !h.whole() {
		err = fmt.Errorf("%w: %v", errNotWhole, s.Groups)
	}
	return err
}
