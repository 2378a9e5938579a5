package host

import (
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/wire"
)

// LookAtMembers refreshes the description of the nodes for Topology.
func (p *Peers) LookAtMembers() {
	applied, committed := p.raft.Progress()
	members := []limiter.Member{}
	for _, s := range p.raft.Servers() {
		members = append(members, p.memberView(s, applied, committed))
	}
	slices.SortFunc(members, func(a, b limiter.Member) int { return strings.Compare(a.ID, b.ID) })
	p.Members.Store(&members)
}

// memberView describes a member. applied is the last entry that this node has applied, and committed the last that it
// knows to be committed.
func (p *Peers) memberView(s raft.Server, applied, committed uint64) limiter.Member {
	m := limiter.Member{ID: string(s.ID), RaftAddr: string(s.Address), Voter: s.Suffrage == raft.Voter}
	if m.ID == p.of.Options.NodeID {
		m.ClientAddr, m.Up, m.AppliedIndex, m.LagEntries = p.of.Options.ClientAddr, true, applied,
			behind(committed, applied)
		m.Format, m.WebURL, m.Zone = p.of.Options.Format, p.of.Options.WebURL, p.of.Options.Zone
		return m
	}
	if last, ok := p.Last(m.ID); ok {
		m.LastHeard = time.Since(last.At)
		m.ClientAddr, m.Up, m.AppliedIndex = last.ClientAddr, m.LastHeard < 3*timers.StatusEvery, last.Index
		m.Up = m.Up && !p.IsStopping(m.ID)
		m.LagEntries, m.ClockAhead, m.Format = last.lag, last.ahead, max(last.Format, wire.Oldest)
		m.WebURL, m.Zone = last.WebURL, last.Zone
	}
	return m
}

// behind returns how many committed entries are not applied.
func behind(commit, applied uint64) uint64 { return commit - min(applied, commit) }
