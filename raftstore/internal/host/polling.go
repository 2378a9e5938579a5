package host

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// idleAfter is how long no call has used a connection of a group before the connection is closed. It is longer than the
// pauses of a client that is in use.
const idleAfter = 10 * time.Second

// Start follows the configuration until the node closes. The host asks the other nodes.
func (p *Peers) Start() {
	p.of.Every(timers.HousekeepEvery, p.rest)
	p.follow(p.raft.Servers())
	p.of.Options.Host.join(p)
	p.of.Every(timers.HousekeepEvery, func() {
		if p.follow(p.raft.Servers()) {
			p.of.Options.Host.exchange()
		}
		p.closeIdle()
	})
}

// due reports whether a status is due. A check of the loop may come a moment early.
func due(asked, now time.Time) bool {
	return now.Sub(asked) >= timers.StatusEvery-timers.HousekeepEvery/2
}

// closeIdle closes the connections of this group that are not in use.
func (p *Peers) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.Nodes {
		one.client.CloseIdle(idleAfter)
		one.asker.CloseIdle(idleAfter)
	}
}

// eachAddr calls each with every peer and its address.
func (p *Peers) eachAddr(each func(addr string, one *Peer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.Nodes {
		each(one.addr, one)
	}
}

func (p *Peers) neverAsked(one *Peer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return one.asked.IsZero()
}

func (p *Peers) markAsked(one *Peer, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one.asked = now
}

// poll asks a node for its status.
func (p *Peers) poll(one *Peer, asked time.Time) {
	if s, err := Ask(one.ctx, one.asker); err == nil {
		p.heard(one, s, asked)
	}
}

// heard records the status of a node that was asked for it at a time.
func (p *Peers) heard(one *Peer, s Status, asked time.Time) {
	h := p.hears(s, time.Since(asked))
	p.mu.Lock()
	one.Heard = h
	one.IsBack(s, asked)
	p.mu.Unlock()
	one.compareBounds(p.of, s.MaxMemory)
}

// Ask returns a node's status.
func Ask(ctx context.Context, client *peer.Client) (s Status, err error) {
	ctx, cancel := context.WithTimeout(ctx, timers.StatusTimeout)
	defer cancel()
	return statusOf(client.Call(ctx, calls.Status, nil))
}

// statusOf returns the status in the answer to a call.
func statusOf(code byte, answer []byte, err error) (s Status, _ error) {
	if err != nil {
		return s, err
	}
	if err := calls.OutcomeOf(code, answer); err != nil {
		return s, err
	}
	return s, json.Unmarshal(answer, &s)
}

// askTerm returns the term a node is in.
func askTerm(ctx context.Context, client *peer.Client) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, timers.StatusTimeout)
	defer cancel()
	code, answer, err := client.Call(ctx, calls.Term, nil)
	switch {
	case err != nil:
		return 0, err
	case code != calls.Answered || len(answer) != 8:
		return 0, failure.ErrUnavailable
	}
	return binary.LittleEndian.Uint64(answer), nil
}

// Wake makes Consensus.AskTerm ask these members, in one goroutine for each.
func (p *Peers) Wake(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.Nodes {
		if slices.Contains(ids, one.ID) {
			one.terms.Wake()
		}
	}
}

// rest ends the goroutines that ask for terms and are not in use.
func (p *Peers) rest() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.Nodes {
		one.terms.Rest()
	}
}
