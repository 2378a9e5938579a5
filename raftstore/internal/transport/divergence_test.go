package transport

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/faults"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// TestPausedLeaderDoesNotDiverge checks a leader that wakes from a pause and receives its successor's first heartbeat
// while a proposal waits. With the Raft library's fast path for heartbeats, it writes the proposal under the
// successor's term, in place of the successor's entry. Without the wrapper the test must see this defect. A leader on a
// busy machine may stop waiting too early, so the test makes several attempts.
func TestPausedLeaderDoesNotDiverge(t *testing.T) {
	require.False(t, diverges(t, true), "the wrapper must prevent the divergence")
	seen := false
	for attempt := 0; !seen && attempt < 5; attempt++ {
		seen = diverges(t, false)
	}
	require.True(t, seen, "the test no longer shows the defect, or the library has fixed it: see transport.go")
}

// diverges reports whether a deposed leader applies its own entry at an index at which its successor committed
// another.
func diverges(t *testing.T, wrapped bool) bool {
	a, carrier := loopbackTransport(t), raft.Transport(nil)
	if carrier = a; wrapped {
		carrier = Transport{a, &Gate{Logs: raftlog.Guard(raft.NewInmemStore(), nil), Limit: time.Hour},
			func(faults.Point) {}}
	}
	b := newPuppet(t)
	c := newPuppet(t)
	applied := &appliedEntries{}
	r := startAlone(t, carrier, applied, raft.Configuration{Servers: []raft.Server{
		{ID: "a", Address: a.LocalAddr()}, {ID: "b", Address: b.LocalAddr()}, {ID: "c", Address: c.LocalAddr()},
	}})
	require.Eventually(t, func() bool { return r.State() == raft.Leader }, 10*time.Second, time.Millisecond)
	require.NoError(t, r.Apply([]byte("before"), time.Second).Error())
	term, last := r.CurrentTerm(), r.LastIndex()

	b.depose()
	c.depose()
	header := raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte("b"), Addr: []byte(b.LocalAddr())}
	heartbeat := raft.AppendEntriesRequest{RPCHeader: header, Term: term + 1}
	require.NoError(t, b.AppendEntries("a", a.LocalAddr(), &heartbeat, new(raft.AppendEntriesResponse)))
	r.Apply([]byte("of the deposed leader"), time.Second).Error()

	of := &raft.Log{Index: last + 1, Term: term + 1, Type: raft.LogCommand, Data: []byte("of its successor")}
	replicate := raft.AppendEntriesRequest{
		RPCHeader: header, Term: term + 1,
		PrevLogEntry: last, PrevLogTerm: term, Entries: []*raft.Log{of}, LeaderCommitIndex: last + 1,
	}
	require.Eventually(t, func() bool {
		answer := new(raft.AppendEntriesResponse)
		return b.AppendEntries("a", a.LocalAddr(), &replicate, answer) == nil && answer.Success
	}, 10*time.Second, time.Millisecond)
	require.Eventually(t, func() bool { return r.AppliedIndex() == last+1 }, 10*time.Second, time.Millisecond)
	require.NoError(t, r.Shutdown().Error())
	return !bytes.Equal(applied.last, of.Data)
}

func loopbackTransport(t *testing.T) *raft.NetworkTransport {
	n, err := raft.NewTCPTransportWithLogger("127.0.0.1:0", nil, 2, time.Second, hclog.NewNullLogger())
	require.NoError(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

func startAlone(t *testing.T, carrier raft.Transport, machine raft.FSM, servers raft.Configuration) *raft.Raft {
	config := raft.DefaultConfig()
	config.LocalID, config.Logger = "a", hclog.NewNullLogger()
	config.PreVoteDisabled = true
	// Nothing but the test may end the leader's wait.
	config.HeartbeatTimeout, config.ElectionTimeout = 2*time.Second, 2*time.Second
	config.LeaderLeaseTimeout = 2 * time.Second
	store, images := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
	require.NoError(t, raft.BootstrapCluster(config, store, store, images, carrier, servers))
	r, err := raft.NewRaft(config, machine, store, store, images, carrier)
	require.NoError(t, err)
	return r
}

// puppet is a node that agrees with its leader until the test deposes that leader.
type puppet struct {
	*raft.NetworkTransport
	deposed chan struct{}
}

func newPuppet(t *testing.T) *puppet {
	p := &puppet{loopbackTransport(t), make(chan struct{})}
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
	go p.play(stop)
	return p
}

func (p *puppet) depose() { close(p.deposed) }

func (p *puppet) play(stop chan struct{}) {
	for {
		select {
		case rpc := <-p.Consumer():
			select {
			case <-p.deposed:
				rpc.Respond(nil, fmt.Errorf("unreachable"))
				continue
			default:
			}
			switch request := rpc.Command.(type) {
			case *raft.RequestVoteRequest:
				rpc.Respond(&raft.RequestVoteResponse{Term: request.Term, Granted: true}, nil)
			case *raft.AppendEntriesRequest:
				last := request.PrevLogEntry + uint64(len(request.Entries))
				rpc.Respond(&raft.AppendEntriesResponse{Term: request.Term, Success: true, LastLog: last}, nil)
			}
		case <-stop:
			return
		}
	}
}

// appliedEntries holds the last command applied.
type appliedEntries struct{ last []byte }

func (a *appliedEntries) Apply(l *raft.Log) any { a.last = l.Data; return nil }

func (a *appliedEntries) Snapshot() (raft.FSMSnapshot, error) { return nil, fmt.Errorf("none") }

func (a *appliedEntries) Restore(io.ReadCloser) error { return nil }
