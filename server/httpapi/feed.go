package httpapi

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/latency"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/service"
)

// feedEvery is the maximum age of a cached status, so that the number of viewers does not load the server.
const feedEvery = 500 * time.Millisecond

// topShown is the number of heaviest keys that the page shows, and eventsShown the number of newest events.
const topShown, eventsShown = 10, 10

// unsupportedShown is the number of refused requests that the page shows.
const unsupportedShown = 20

// feed computes the status that the page shows.
type feed struct {
	*service.Service
	bounds []float64

	mu   sync.Mutex
	last *Status
	made time.Time
}

// Status is the answer of /status.json. It contains counters, from which the viewer computes rates, and current values.
type Status struct {
	Version  string           `json:"version"`
	NowMs    int64            `json:"now_ms"`
	UptimeS  int64            `json:"uptime_s"`
	Allowed  int64            `json:"allowed"` // requests of all commands
	Limited  int64            `json:"limited"`
	Policies []PolicyStatus   `json:"policies"`
	Latency  LatencyStatus    `json:"latency"`
	Keys     int64            `json:"keys"`
	Memory   MemoryStatus     `json:"memory"`
	Clients  int              `json:"clients"`
	Clock    int64            `json:"clock_behind_ms"`
	Cluster  *ClusterStatus   `json:"cluster"` // null for a server that runs alone
	Denials  []service.Denial `json:"denials"`
	Admitted []TopKey         `json:"top_admitted"`
	Denied   []TopKey         `json:"top_denied"` // null on a follower, because only the leader knows
	Events   []EventStatus    `json:"events"`     // the newest first
	// Unsupported is what clients of this node sent and weir refused because it does not support it, the last first.
	Unsupported []service.UnsupportedUse `json:"unsupported"`
}

// TopKey is one of the keys with the most recent units, as RL.TOP counts them.
type TopKey struct {
	Key   string `json:"key"`
	Units int64  `json:"units"`
	// Used, Limit and Holds describe a limiter with open holds, whose units count as used. They are absent for others.
	Used  int64 `json:"used,omitempty"`
	Limit int64 `json:"limit,omitempty"`
	Holds int   `json:"holds,omitempty"`
}

// EventStatus is an event, as RL.EVENTS answers it.
type EventStatus struct {
	Group  int    `json:"group"` // the Raft group that wrote it
	Cursor uint64 `json:"cursor"`
	AtMs   int64  `json:"at_ms"`
	Kind   string `json:"kind"`
	Policy string `json:"policy"`
	Key    string `json:"key"`
	ID     string `json:"id"`
	Share  int64  `json:"share"`
	Amount int64  `json:"amount"`
	Used   int64  `json:"used"`
	Limit  int64  `json:"limit"`
}

// PolicyStatus counts the requests of one policy.
type PolicyStatus struct {
	Name     string `json:"name"`
	Allowed  int64  `json:"allowed"`
	Limited  int64  `json:"limited"`
	Shadowed int64  `json:"shadowed"`
	Limits   string `json:"limits"` // as RL.POLICY GET writes them, separated by commas
}

// LatencyStatus is the histogram of the decision time.
type LatencyStatus struct {
	BoundsS []float64 `json:"bounds_s"` // the last bucket has no bound
	Counts  []int64   `json:"counts"`
}

// MemoryStatus is in bytes, except the evicted keys and their forgiven units.
type MemoryStatus struct {
	Used     int64  `json:"used"`
	Max      int64  `json:"max"` // 0: no bound
	Resident uint64 `json:"resident"`
	Evicted  int64  `json:"evicted"`
	Forgiven int64  `json:"forgiven"`
}

// ClusterStatus is the cluster as this node sees it.
type ClusterStatus struct {
	Self    string       `json:"self"`     // the node that answered
	Leader  string       `json:"leader"`   // of the first group; "": it is unknown
	StaleMs int64        `json:"stale_ms"` // upper bound of the age of the limiters in this status; 0: linearizable
	Term    uint64       `json:"term"`     // of the first group
	Nodes   []NodeStatus `json:"nodes"`
	Groups  GroupsStatus `json:"groups"`
}

// GroupsStatus counts Raft groups as this node sees them.
type GroupsStatus struct {
	Count      int    `json:"count"`
	Led        int    `json:"led"`        // by this node
	Leaders    string `json:"leaders"`    // in words
	Leaderless int    `json:"leaderless"` // their leaders are unknown
	Behind     uint64 `json:"behind"`     // committed entries that this node has not applied, in the worst group
}

// NodeStatus describes one node. Lag is in log entries.
type NodeStatus struct {
	ID           string `json:"id"`
	Addr         string `json:"addr"`
	Role         string `json:"role"`
	Up           bool   `json:"up"`
	Lag          uint64 `json:"lag"`
	ClockAheadMs int64  `json:"clock_ahead_ms"`
	HeardMs      int64  `json:"heard_ms"`
	WebURL       string `json:"web_url"` // URL of its page; "": not reachable from other machines, or unknown
}

func newFeed(s *service.Service) *feed {
	f := &feed{Service: s}
	for i := range latency.Buckets - 1 {
		f.bounds = append(f.bounds, latency.Bound(i).Seconds())
	}
	return f
}

// status returns a status that is at most feedEvery old. Callers must not change it.
func (f *feed) status() *Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.made) >= feedEvery { // also true before the first status
		f.last, f.made = f.make(), time.Now()
	}
	return f.last
}

func (s *feed) make() *Status {
	state, staleMs := s.ReadHere() // must precede the reads below
	stats := s.Limiter.Stats()
	_, resident := service.ProcessMemory()
	decisions := s.Stats.Decisions.Snapshot()
	v := &Status{
		Version: s.Version, NowMs: time.Now().UnixMilli(), UptimeS: int64(time.Since(s.Started).Seconds()),
		Policies: s.policyStatuses(state.Policies()),
		Latency:  LatencyStatus{s.bounds, decisions.Counts[:]},
		Keys:     stats.Keys,
		Memory:   MemoryStatus{stats.MemoryBytes, stats.MaxMemoryBytes, resident, stats.Evicted, stats.ForgivenUnits},
		Clients:  int(s.Clients.Load()),
		Clock:    s.ClockBehind().Milliseconds(),
		Cluster:  s.clusterView(staleMs),
		Denials:  s.Recent.Look(),
		Admitted: topKeys(state, engine.Admitted),
		Events:   s.newestEvents(state),
	}
	if s.OnlyLeader() == nil {
		v.Denied = topKeys(state, engine.Denied)
	}
	refused := s.Unsupported.List()
	v.Unsupported = refused[:min(len(refused), unsupportedShown)]
	v.Allowed, v.Limited = s.Stats.Requests()
	return v
}

func topKeys(state limiter.View, v engine.Verdict) []TopKey {
	top := []TopKey{}
	for _, heavy := range state.Top(v, topShown) {
		k := TopKey{Key: quote.Printable(heavy.Key, service.RecentKeyBytes), Units: heavy.Units}
		if engine.Reserved(heavy.Key) { // a limiter of a policy
			if info, _ := state.Inspect(heavy.Key); info.Holders > 0 {
				k.Used, k.Limit, k.Holds = info.Used, info.Limit.Max, info.Holders
			}
		}
		top = append(top, k)
	}
	return top
}

func (s *feed) newestEvents(state limiter.View) []EventStatus {
	groups, all := 1, []EventStatus{}
	if s.Replica != nil {
		groups = len(s.Replica.Topology().Groups)
	}
	for g := range groups {
		_, at, _ := state.Events(g, engine.MaxUnits, 0)
		list, _, _ := state.Events(g, at.Last-min(at.Last, eventsShown), eventsShown)
		for _, e := range list {
			all = append(all, EventStatus{g, e.Cursor, e.AtMs, e.Kind.String(), e.Policy,
				quote.Printable([]byte(e.Key), service.RecentKeyBytes),
				quote.Printable([]byte(e.ID), service.RecentKeyBytes), e.Share, e.Amount, e.Used, e.Limit})
		}
	}
	slices.SortFunc(all, func(a, b EventStatus) int {
		return cmp.Or(cmp.Compare(b.AtMs, a.AtMs), cmp.Compare(a.Group, b.Group), cmp.Compare(b.Cursor, a.Cursor))
	})
	return all[:min(len(all), eventsShown)]
}

func (s *feed) policyStatuses(set *engine.Policies) []PolicyStatus {
	views := []PolicyStatus{}
	page := s.Book.At(set)
	for _, p := range set.All() {
		o := page.Of[p.Name]
		var texts []string
		for i := range p.Limits {
			l := p.Limits[i].Limit
			texts = append(texts, strings.ToUpper(l.Algorithm.String())+" "+limits.Rule(l))
		}
		views = append(views, PolicyStatus{p.Name, o.Allowed.Load(), o.Limited.Load(), p.Counts().Shadowed,
			strings.Join(texts, ", ")})
	}
	return views
}

func (s *feed) clusterView(staleMs int64) *ClusterStatus {
	if s.Replica == nil {
		return nil
	}
	t := s.Replica.Topology()
	var leaders []string
	for _, g := range t.Groups {
		leaders = append(leaders, g.Leader)
	}
	said := limiter.LeadersText(leaders)
	if below := limiter.ReplicasText(t.BelowReplicas(), len(t.Groups), t.Replicas); below != "" {
		said += "; " + below
	}
	v := &ClusterStatus{Self: t.Self, Leader: t.Leader, StaleMs: staleMs, Term: t.Term,
		Groups: GroupsStatus{len(t.Groups), t.Led(), said, t.Leaderless(), t.Behind()}}
	for i := range t.Nodes {
		m := &t.Nodes[i]
		v.Nodes = append(v.Nodes, NodeStatus{
			ID: m.ID, Addr: m.ClientAddr, Up: m.Up,
			Role: limiter.RoleText(t.LedBy(m.ID), len(t.Groups), t.ReplicasOn(m.ID), m.Voter),
			Lag:  m.LagEntries, ClockAheadMs: m.ClockAhead.Milliseconds(), HeardMs: service.CeilMs(m.LastHeard),
			WebURL: m.WebURL,
		})
	}
	return v
}
