package httpapi

import (
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/latency"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// feedEvery is how old a status may be: however many look, the server is asked no
// more often.
const feedEvery = 500 * time.Millisecond

// topShown is how many of the heaviest keys the page shows.
const topShown = 10

// feed makes the status that the page shows.
type feed struct {
	*service.Service
	bounds []float64

	mu   sync.Mutex
	last *Status
	made time.Time
}

// Status is what /status.json tells, the server at one moment: counters, from which
// whoever looks makes rates, and what is now.
type Status struct {
	Version  string           `json:"version"`
	NowMs    int64            `json:"now_ms"`
	UptimeS  int64            `json:"uptime_s"`
	Allowed  int64            `json:"allowed"` // requests, over all commands
	Limited  int64            `json:"limited"`
	Policies []PolicyStatus   `json:"policies"`
	Latency  LatencyStatus    `json:"latency"`
	Keys     int64            `json:"keys"`
	Memory   MemoryStatus     `json:"memory"`
	Clients  int              `json:"clients"`
	Clock    int64            `json:"clock_behind_ms"`
	Cluster  *ClusterStatus   `json:"cluster"` // null: one node
	Denials  []service.Denial `json:"denials"`
	Admitted []TopKey         `json:"top_admitted"`
	Denied   []TopKey         `json:"top_denied"` // null: the leader knows
}

// TopKey is one of the keys with the most units of late, as RL.TOP counts them.
type TopKey struct {
	Key   string `json:"key"`
	Units int64  `json:"units"`
}

// PolicyStatus counts requests by one policy.
type PolicyStatus struct {
	Name     string `json:"name"`
	Allowed  int64  `json:"allowed"`
	Limited  int64  `json:"limited"`
	Shadowed int64  `json:"shadowed"`
}

// LatencyStatus is the histogram of the time to decide.
type LatencyStatus struct {
	BoundsS []float64 `json:"bounds_s"` // the last bucket has none
	Counts  []int64   `json:"counts"`
}

// MemoryStatus is in bytes, but for the keys given up and the units forgiven with them.
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
	Leader  string       `json:"leader"`   // "": none is known
	StaleMs int64        `json:"stale_ms"` // how old the limiters in this status may be; 0: linearizable
	Term    uint64       `json:"term"`
	Nodes   []NodeStatus `json:"nodes"`
}

// NodeStatus is one of its nodes; Lag is in entries of the log.
type NodeStatus struct {
	ID           string `json:"id"`
	Addr         string `json:"addr"`
	Role         string `json:"role"`
	Up           bool   `json:"up"`
	Lag          uint64 `json:"lag"`
	ClockAheadMs int64  `json:"clock_ahead_ms"`
	HeardMs      int64  `json:"heard_ms"`
	WebURL       string `json:"web_url"` // of its page; "": not reached from elsewhere, or not known
}

func newFeed(s *service.Service) *feed {
	f := &feed{Service: s}
	for i := range latency.Buckets - 1 {
		f.bounds = append(f.bounds, latency.Bound(i).Seconds())
	}
	return f
}

// Status is at most feedEvery old; nobody changes it.
func (f *feed) status() *Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.made) >= feedEvery { // also where none was made
		f.last, f.made = f.make(), time.Now()
	}
	return f.last
}

func (s *feed) make() *Status {
	staleMs := s.ReadForPeople() // before anything is read
	stats := s.Limiter.Stats()
	_, resident := service.ProcessMemory()
	decisions := s.Stats.Decisions.Snapshot()
	v := &Status{
		Version: s.Version, NowMs: time.Now().UnixMilli(), UptimeS: int64(time.Since(s.Started).Seconds()),
		Policies: s.policyStatuses(),
		Latency:  LatencyStatus{s.bounds, decisions.Counts[:]},
		Keys:     stats.Keys,
		Memory:   MemoryStatus{stats.MemoryBytes, stats.MaxMemoryBytes, resident, stats.Evicted, stats.ForgivenUnits},
		Clients:  int(s.Clients.Load()),
		Clock:    s.ClockBehind().Milliseconds(),
		Cluster:  s.clusterView(staleMs),
		Denials:  s.Recent.Look(),
		Admitted: s.topKeys(engine.Admitted),
	}
	if s.OnlyLeader() == nil {
		v.Denied = s.topKeys(engine.Denied)
	}
	v.Allowed, v.Limited = s.Stats.Requests()
	return v
}

func (s *feed) topKeys(v engine.Verdict) []TopKey {
	top := []TopKey{}
	for _, heavy := range s.Limiter.Top(v, topShown) {
		top = append(top, TopKey{resp.Printable(heavy.Key, service.RecentKeyBytes), heavy.Units})
	}
	return top
}

func (s *feed) policyStatuses() []PolicyStatus {
	set, views := s.Limiter.Policies(), []PolicyStatus{}
	page := s.Book.At(set)
	for _, p := range set.All() {
		o := page.Of[p.Name]
		views = append(views, PolicyStatus{p.Name, o.Allowed.Load(), o.Limited.Load(), p.Counts().Shadowed})
	}
	return views
}

func (s *feed) clusterView(staleMs int64) *ClusterStatus {
	if s.Replica == nil {
		return nil
	}
	t := s.Replica.Topology()
	v := &ClusterStatus{Self: t.Self, Leader: t.Leader, StaleMs: staleMs, Term: t.Term}
	for i := range t.Nodes {
		m := &t.Nodes[i]
		v.Nodes = append(v.Nodes, NodeStatus{
			ID: m.ID, Addr: m.ClientAddr, Role: roleOf(t, m), Up: m.Up,
			Lag: m.LagEntries, ClockAheadMs: m.ClockAhead.Milliseconds(), HeardMs: service.CeilMs(m.LastHeard), WebURL: m.WebURL,
		})
	}
	return v
}

func roleOf(t *limiter.Topology, m *limiter.Member) string {
	switch {
	case m.ID == t.Leader:
		return "leader"
	case m.Voter:
		return "follower"
	}
	return "no vote yet"
}
