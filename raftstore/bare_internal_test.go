package raftstore

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-project/weir/internal/logtest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/host"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/logging"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// bareNode is a node that runs only the Raft library, so that a test decides when each other part acts.
type bareNode struct {
	*Node
	carrier *raft.InmemTransport
	ended   []error // the errors that the node reported as fatal
	said    logtest.Buffer
}

// inMemory makes a transport in memory the carrier of a group.
type inMemory struct{ *raft.InmemTransport }

// RequestPreVote implements raft.WithPreVote.
func (inMemory) RequestPreVote(raft.ServerID, raft.ServerAddress, *raft.RequestPreVoteRequest,
	*raft.RequestPreVoteResponse) error {
	return errors.ErrUnsupported
}

// Elect implements transport.Carrier.
func (inMemory) Elect(context.Context) bool { return false }

// LastTransfer implements transport.Carrier.
func (inMemory) LastTransfer() time.Time { return time.Time{} }

// newBareNode makes node "a" with an empty log in memory.
func newBareNode(t *testing.T) *bareNode { return newBareNodeCalled(t, "a") }

func newBareNodeCalled(t *testing.T, id string) *bareNode {
	b := &bareNode{}
	o := host.Options{
		NodeID: id, Groups: 1, RaftAddr: id + ":1", Secret: []byte("secret"), Heartbeat: 50 * time.Millisecond,
		DataDir: "data", FS: vfs.NewMem(),
		Logger:  slog.New(slog.NewTextHandler(&b.said, &slog.HandlerOptions{Level: slog.LevelDebug})),
		OnFatal: func(err error) { b.ended = append(b.ended, err) },
	}
	require.NoError(t, o.Complete())
	require.NoError(t, o.FS.MkdirAll(o.DataDir, 0o700))
	o.Host = host.NewHost(&o)
	t.Cleanup(func() { require.NoError(t, o.Host.Close()) })
	b.Node = newNode(o)
	b.own.Identity.NodeID = id
	store := raft.NewInmemStore()
	b.logs = raftlog.Guard(store, b.own.Fatal)
	_, b.carrier = raft.NewInmemTransport(raft.ServerAddress(o.RaftAddr))
	b.transport = inMemory{b.carrier}
	b.makeParts()
	config := b.raftConfig()
	config.Logger = logging.New(slog.New(slog.DiscardHandler), b.own.Peers.Expects)
	var err error
	b.raft.Raft, err = raft.NewRaft(config, b.fsm, store, store, raft.NewInmemSnapshotStore(), b.carrier)
	require.NoError(t, err)
	t.Cleanup(func() {
		b.own.Cancel()
		b.queue.Close()
		require.NoError(t, b.raft.Shutdown().Error())
	})
	return b
}

// configure gives a node its first configuration. All of its servers are voters.
func (b *bareNode) configure(t *testing.T, ids ...string) {
	var c raft.Configuration
	for _, id := range ids {
		c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(id + ":1")})
	}
	require.NoError(t, b.raft.BootstrapCluster(c).Error())
}

// leads makes an elected node serve.
func (b *bareNode) leads(t *testing.T) *leadership.Term {
	require.Eventually(t, func() bool { return b.raft.State() == raft.Leader }, 20*time.Second, time.Millisecond)
	clock := persistence.StartClock(b.own.Options.Source, at(0))
	r := &leadership.Term{Number: b.raft.CurrentTerm(), Clock: clock}
	b.leadership.Current.Store(r)
	return r
}

// hear records a status of a member. A status that is heard now stays new for an hour, because a busy machine may pause
// the test. The node must have no configuration yet: an election reads the status of the members.
func (b *bareNode) hear(id string, index uint64, ago time.Duration) {
	said := host.Heard{Status: host.Status{NodeID: id, Index: index}, At: time.Now().Add(-ago)}
	if ago == 0 {
		said.At = time.Now().Add(time.Hour)
	}
	b.own.Peers.Nodes[id] = &host.Peer{ID: id, Heard: said}
}

// keepImages gives a node a directory of images.
func (b *bareNode) keepImages(t *testing.T) {
	images, err := persistence.OpenImages(persistence.StoreOptions{Dir: "images", FS: b.own.Options.FS})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, images.Close()) })
	b.images, b.fsm.Images, b.snapshots.Images = images, images, images
}

// at returns limiter time, in milliseconds after a fixed start.
func at(ms int64) engine.Stamp { return engine.Stamp{NowNs: 1e15 + ms*1e6} }

var bucket = engine.Op{
	Key: []byte("key"), Cost: 1,
	Limit: engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: int64(time.Second)}, Max: 2},
}
