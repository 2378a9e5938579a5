package raftstore

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/weir-project/weir/raftstore/peer"
)

// confirm asks a member for its term whenever a round of the confirmer lacks it, one
// question at a time, until it is no member any more.
func (p *peers) confirm(ctx context.Context, one *peerNode) {
	for {
		select {
		case <-one.wake:
		case <-ctx.Done():
			return
		}
		c := p.node.confirms
		for r := c.open(one.id); r != nil && ctx.Err() == nil; r = c.open(one.id) {
			term, err := askTerm(ctx, one.asker)
			if err != nil || !c.heard(r, one.id, term) {
				pause(ctx, askAgain)
			}
		}
	}
}

// askTerm returns the term a node is in.
func askTerm(ctx context.Context, client *peer.Client) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, callTerm, nil)
	switch {
	case err != nil:
		return 0, err
	case code != answered || len(answer) != 8:
		return 0, ErrUnavailable
	}
	return binary.LittleEndian.Uint64(answer), nil
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// askFor has members asked for their term, unless that is under way.
func (n *Node) askFor(ids []string) {
	n.peers.mu.Lock()
	defer n.peers.mu.Unlock()
	for _, one := range n.peers.nodes {
		if !slices.Contains(ids, one.id) {
			continue
		}
		select {
		case one.wake <- struct{}{}:
		default:
		}
	}
}

// term is the term this node is in.
func (n *Node) term() uint64 { return n.raft.CurrentTerm() }
