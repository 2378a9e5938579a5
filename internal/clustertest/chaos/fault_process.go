package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	// upTimeout is how long a restarted node may take until it answers PING.
	upTimeout = 20 * time.Second
	// transferTimeout is for the answer to a transfer, which waits for the new
	// leader.
	transferTimeout = 5 * time.Second
)

// ErrNotUp reports that a node does not answer after its restart.
var ErrNotUp = errors.New("does not answer after its restart")

func (h hand) kill(ctx context.Context, node int) error {
	n := h.Nodes[node]
	n.Process().Kill()
	_ = sleep(ctx, h.lasts)
	return n.Start()
}

func (h hand) pause(ctx context.Context, node int) error {
	p := h.Nodes[node].Process()
	p.Pause()
	_ = sleep(ctx, h.lasts)
	p.Resume()
	return nil
}

// wallFlag begins the argument that gives a process a wrong wall clock.
const wallFlag = "--test-wall-offset="

// stepWall restarts a node with a wrong wall clock, because the clock of a running process cannot be changed. It then
// makes that node the leader, because only the leader's clock matters. The next restart corrects the clock.
func (h hand) stepWall(ctx context.Context) error {
	n, offset := h.clockToStep(), wallStep
	if h.rng.IntN(2) == 0 {
		offset = -wallStep
	}
	n.Process().Kill()
	if err := n.Start(wallFlag + offset.String()); err != nil {
		return err
	}
	if err := n.AwaitUp(ctx); err != nil {
		return err
	}
	_ = poll(ctx, h.lasts, func() bool { return h.transfer(n.ID) == nil && n.Leads() })
	return nil
}

// clockToStep returns the node whose wall clock is wrong already, or a random one. The cluster trusts the wall clocks
// of a majority after all nodes were down, so never more than one clock is wrong: a restart of all nodes corrects them
// together, and a majority that was an hour behind would count as an hour that passed.
func (h hand) clockToStep() *Node {
	n := h.Nodes[h.anyone()] // always drawn, so that later draws do not depend on the clocks
	if i := slices.IndexFunc(h.Nodes, (*Node).hasWrongWall); i >= 0 {
		return h.Nodes[i]
	}
	return n
}

// Roll restarts the nodes one after the other. Each restart waits until the previous node is ready.
func (c *Cluster) Roll(ctx context.Context) error {
	for _, n := range c.Nodes {
		if err := n.Process().Stop(); err != nil {
			return fmt.Errorf("%s %w", n.ID, err)
		}
		if err := n.Start(); err != nil {
			return err
		}
		if err := n.AwaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// AwaitReady waits until the node serves as a member, or until ctx is over. An operator who restarts a cluster in order
// waits for /readyz in the same way: the node has heard from a leader, which decides its requests.
func (n *Node) AwaitReady(ctx context.Context) error {
	if err := n.AwaitUp(ctx); err != nil {
		return err
	}
	err := poll(ctx, upTimeout, func() bool {
		_, err := n.Ask(askTimeout, "RL.TOKENBUCKET", "ready", probeRate, probeRate)
		return err == nil
	})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s %w\n%s", n.ID, ErrNotUp, n.LogTail())
	}
	return nil
}

// AwaitUp waits until the node answers, or ctx is over.
func (n *Node) AwaitUp(ctx context.Context) error {
	up := false
	_ = poll(ctx, upTimeout, func() bool {
		if !n.Process().Running() {
			return true
		}
		_, err := n.Ask(askTimeout, "PING")
		up = err == nil
		return up
	})
	if !up && ctx.Err() == nil {
		return fmt.Errorf("%s %w\n%s", n.ID, ErrNotUp, n.LogTail())
	}
	return nil
}

// transfer asks the leader to transfer leadership to a given node, or to any node. A failed transfer is not a fault of
// the server, but an unknown command is.
func (h hand) transfer(to ...string) error {
	_, err := h.Nodes[h.leader()].Ask(transferTimeout, append([]string{"WEIR.CLUSTER", "TRANSFER"}, to...)...)
	if refused := ErrorReply(""); errors.As(err, &refused) && strings.HasPrefix(string(refused), "ERR unknown") {
		return err
	}
	return nil
}

// fillDisk fills the disk of the last node. The node may stop. The checks judge that its answers stay true.
func (h hand) fillDisk(ctx context.Context) error {
	n := h.Nodes[len(h.Nodes)-1]
	n.Excuse(true)
	defer n.Excuse(false)
	err := h.Disk.Fill()
	_ = sleep(ctx, h.lasts)
	err = errors.Join(err, h.Disk.Free())
	if n.Process().Running() {
		// The node may have failed and be about to stop. The kill ensures that it has ended before the next step.
		n.Process().Kill()
	}
	return errors.Join(err, n.Start())
}
