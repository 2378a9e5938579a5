package server

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

// fakeCluster is nodes that share one limiter, so that all are always up to date,
// and agree at once on who leads.
type fakeCluster struct {
	*tableLimiter

	mu   sync.Mutex
	topo limiter.Topology // without Self
	down error            // what every node's ReadIndex answers instead
	old  time.Duration
	did  []string // changes that were asked for
	fail error    // what a change answers
}

// newFakeCluster has the nodes a, b and c; a leads.
func newFakeCluster() *fakeCluster {
	f := &fakeCluster{tableLimiter: newTableLimiter()}
	f.topo = limiter.Topology{ClusterID: "c1", Leader: "a", LastLeader: "a", Term: 7, AppliedIndex: 40, CommitIndex: 42, Format: 1, Nodes: []limiter.Member{
		{ID: "a", ClientAddr: "10.0.0.1:6380", RaftAddr: "10.0.0.1:6390", Voter: true, Up: true, AppliedIndex: 42, Format: 2},
		{ID: "b", ClientAddr: "10.0.0.2:6380", RaftAddr: "10.0.0.2:6391", Voter: true, Up: true, AppliedIndex: 41, LagEntries: 1, LastHeard: time.Second, Format: 1},
		{ID: "c", ClientAddr: "c.example:6380", RaftAddr: "c.example:6392", Up: true, AppliedIndex: 42, Voter: true, LastHeard: 2 * time.Second},
	}}
	return f
}

// change changes what all nodes see from now on.
func (f *fakeCluster) change(how func(*limiter.Topology)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.topo.Nodes = append([]limiter.Member(nil), f.topo.Nodes...)
	how(&f.topo)
}

// lead makes a node the leader, or with "" none.
func (f *fakeCluster) lead(id string) {
	f.change(func(t *limiter.Topology) {
		t.Term++
		if t.Leader = id; id != "" {
			t.LastLeader = id
		}
	})
}

// fakeReplica is the Limiter of one node.
type fakeReplica struct {
	*fakeCluster
	id       string
	decided  atomic.Int64 // calls to Decide
	confirms atomic.Int64 // calls to ReadIndex
}

var _ limiter.Replica = (*fakeReplica)(nil)

func (r *fakeReplica) Topology() *limiter.Topology {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.topo
	t.Self = r.id
	return &t
}

func (r *fakeReplica) Decide(ops []engine.Op, out []engine.Decision) error {
	r.decided.Add(1)
	if r.Topology().Leader == "" && !ops[0].Dry {
		return limiter.ErrClusterDown
	}
	return r.fakeCluster.Decide(ops, out)
}

func (r *fakeReplica) ReadIndex() error {
	r.confirms.Add(1)
	if r.Topology().Leader == "" {
		return limiter.ErrClusterDown
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.down
}

func (r *fakeReplica) StaleFor() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.old
}

func (r *fakeReplica) do(what ...string) error {
	if !r.Topology().Leads() && what[0] != "snapshot" {
		return limiter.ErrNotLeader
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.did = append(r.did, strings.Join(what, " "))
	return r.fail
}

func (r *fakeReplica) AddNode(id, addr string) error      { return r.do("add", id, addr) }
func (r *fakeReplica) RemoveNode(id string) error         { return r.do("remove", id) }
func (r *fakeReplica) TransferLeadership(to string) error { return r.do("transfer", to) }
func (r *fakeReplica) Digest() (index, hash uint64)       { return 7, 0xabc }
func (r *fakeReplica) Snapshot() error                    { return r.do("snapshot") }
func (f *fakeCluster) node(id string) *fakeReplica        { return &fakeReplica{fakeCluster: f, id: id} }
func (f *fakeCluster) setAge(d time.Duration)             { f.mu.Lock(); f.old = d; f.mu.Unlock() }
func (f *fakeCluster) setDown(err error)                  { f.mu.Lock(); f.down = err; f.mu.Unlock() }
func (f *fakeCluster) setFail(err error)                  { f.mu.Lock(); f.fail = err; f.mu.Unlock() }
func (f *fakeCluster) asked() []string                    { f.mu.Lock(); defer f.mu.Unlock(); return f.did }

// clusterClient is a client of one node without a socket.
func (f *fakeCluster) client(t testing.TB, id string, cfg Config) (*testClient, *fakeReplica) {
	t.Helper()
	node := f.node(id)
	srv, err := New(silent(cfg), node)
	require.NoError(t, err)
	return (&testServer{Server: srv}).client(t), node
}

// start serves the nodes on loopback ports under their right addresses.
func (f *fakeCluster) start(t testing.TB, cfg Config) map[string]*fakeReplica {
	t.Helper()
	nodes, listeners := map[string]*fakeReplica{}, map[string]net.Listener{}
	for _, m := range f.topo.Nodes {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners[m.ID] = ln
	}
	f.change(func(t *limiter.Topology) {
		for i := range t.Nodes {
			t.Nodes[i].ClientAddr = listeners[t.Nodes[i].ID].Addr().String()
		}
	})
	for id, ln := range listeners {
		nodes[id] = f.node(id)
		serveWire(t, cfg, nodes[id], ln)
	}
	return nodes
}

// addr is where a node that was started listens.
func (f *fakeCluster) addr(id string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.topo.Member(id).ClientAddr
}

var errFake = errors.New("the fake refuses")

func silent(cfg Config) Config {
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}
