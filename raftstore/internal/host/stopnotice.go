package host

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/logging"
)

// stopNoticeMost bounds how long a stopping node waits for the other nodes to receive its notice. A running node
// answers within milliseconds, or within some hundred on a machine with much more to do than it can. A node that is
// down must not delay the stop.
const stopNoticeMost = 500 * time.Millisecond

// AnnounceStop tells the other nodes that this node stops. So no other node takes the end of this node's connections
// for a fault, or transfers leadership to this node.
func (p *Peers) AnnounceStop() {
	p.of.Stopping.Store(true)
	ctx, cancel := context.WithTimeout(p.of.Ctx, stopNoticeMost)
	defer cancel()
	var told sync.WaitGroup
	for _, client := range p.Askers(p.ids()) {
		told.Go(func() { _, _, _ = client.Call(ctx, calls.Stopping, nil) })
	}
	told.Wait()
}

// MarkStopping records that another node stops.
func (p *Peers) MarkStopping(id string) {
	if p.markStopping(id) && !p.of.Stopping.Load() {
		_, noQuorum := p.stops()
		p.of.Log.Info("another node stops; messages about it are logged at level debug until it is back", "node", id,
			"majority_left", !noQuorum)
	}
}

// markStopping reports whether the notice of a member is new.
func (p *Peers) markStopping(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.Nodes[id]
	if one == nil {
		return false
	}
	news := one.Stopping.IsZero()
	one.Stopping = time.Now()
	return news
}

// IsBack records a status that was asked for at asked. A node that answers and does not report its stop is up again.
// The caller holds mu.
func (one *Peer) IsBack(s Status, asked time.Time) {
	if !s.Stopping && asked.After(one.Stopping) {
		one.Stopping = time.Time{}
	}
}

// IsStopping reports whether a member has announced its stop and has not been back since.
func (p *Peers) IsStopping(id string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.Nodes[id]
	return one != nil && !one.Stopping.IsZero()
}

// stops counts the members that have announced their stop, and reports whether the others are too few for a majority.
func (p *Peers) stops() (count int, noQuorum bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	voters, up := 0, 0
	for _, s := range p.Servers {
		one := p.Nodes[string(s.ID)]
		gone := one != nil && !one.Stopping.IsZero()
		if gone {
			count++
		}
		if s.Suffrage == raft.Voter {
			voters++
			if !gone {
				up++
			}
		}
	}
	return count, up <= voters/2
}

// ids returns the members other than this node.
func (p *Peers) ids() (ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.Nodes {
		ids = append(ids, id)
	}
	return ids
}

// StopsExplain reports whether connections end because this node stops or another node announced its stop.
func (p *Peers) StopsExplain() bool {
	count, _ := p.stops()
	return count > 0 || p.of.Stopping.Load()
}

// NoQuorumExplained reports whether the cluster has no majority because nodes were stopped.
func (p *Peers) NoQuorumExplained() bool {
	_, noQuorum := p.stops()
	return noQuorum || p.of.Stopping.Load()
}

// Expects reports whether a line of the library follows from the stop of a node, or is normal in every start or
// election. A line about a node that another group of the process has logged is also expected.
func (p *Peers) Expects(line logging.Line) bool {
	if p.of.Stopping.Load() || logging.BelongsToStart(line) || logging.RefusesCandidate(line) {
		return true
	}
	switch line.Text {
	case "failed to contact quorum of nodes, stepping down", "Election timeout reached, restarting election":
		return p.NoQuorumExplained()
	case "failed to decode incoming command", "failed to flush response": // the library does not name the node
		return p.StopsExplain()
	}
	id := p.concerns(line)
	return id != "" && (p.IsStopping(id) || p.repeats(line.Text, id))
}

// repeats reports whether a group of this process has logged a line about the node a short time ago.
func (p *Peers) repeats(text, id string) bool {
	return p.of.Options.Host.repeats.Seen(text, id, time.Now())
}

// concerns returns the id of the node that a line of the library is about, or "".
func (p *Peers) concerns(line logging.Line) string {
	for _, name := range []string{"peer", "target", "server-id", "last-leader-id"} {
		switch v := line.Value(name).(type) {
		case raft.Server:
			return string(v.ID)
		case raft.ServerID:
			return string(v)
		case raft.ServerAddress:
			return p.IdAt(string(v))
		}
	}
	return ""
}
