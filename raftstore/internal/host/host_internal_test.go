package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// fewServers is a group whose configuration does not change.
type fewServers []raft.Server

func (g fewServers) Servers() []raft.Server              { return g }
func (fewServers) Progress() (applied, committed uint64) { return 0, 0 }
func (fewServers) AskTerm(context.Context, string, func(context.Context) (uint64, error)) {
}

func newPeersIn(h *Host, group int) *Peers {
	g := NewGroup(Options{
		NodeID: "a", Group: group, Host: h, Source: persistence.SystemSource(),
		Logger: slog.New(slog.DiscardHandler),
	})
	g.Peers = NewPeers(g, fewServers{
		{ID: "a", Address: "host-a"}, {ID: "b", Address: "host-b"}, {ID: "c", Address: "host-c"},
	})
	return g.Peers
}

// newTestHost returns a host that asks the others with ask, and that nobody reaches.
func newTestHost(ask askTogether) *Host {
	return newHost(&Options{}, peer.NewHub(nil, peer.HubConfig{}), ask)
}

func (p *Peers) closeGroup() {
	close(p.of.Stop)
	p.of.Cancel()
	p.Close()
	p.of.End()
}

// asks records the questions of a process to each host, and answers them.
type asks struct {
	mu    sync.Mutex
	count map[string][]int // of the questions in each message, by address
	fails map[string]error
	now   map[string]int // messages that have no answer yet, by address
	most  int            // the highest number in now so far
}

// newAsks returns asks of hosts that answer, apart from some.
func newAsks(silent ...string) *asks {
	a := &asks{count: map[string][]int{}, fails: map[string]error{}, now: map[string]int{}}
	for _, addr := range silent {
		a.fails[addr] = errors.New("silent")
	}
	return a
}

func (a *asks) ask(ctx context.Context, addr string, questions []peer.Question) ([]peer.Answer, error) {
	a.mu.Lock()
	a.count[addr] = append(a.count[addr], len(questions))
	err := a.fails[addr]
	a.now[addr]++
	a.most = max(a.most, a.now[addr])
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.now[addr]--
	}()
	if err != nil {
		<-ctx.Done()
		return nil, err
	}
	answers := make([]peer.Answer, len(questions))
	for i, q := range questions {
		answers[i] = peer.Answer{Status: calls.Answered, Payload: Status{NodeID: q.To, Index: 7}.Encode()}
	}
	answers[0].Err = errors.New("this group hangs")
	return answers, nil
}

// TestOneQuestionForAllGroups checks that a process asks each host once a second about all groups. Neither a host that
// does not answer nor a group that does not answer delays the others.
func TestOneQuestionForAllGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsks("host-c")
		p := newTestHost(a.ask)
		const groups = 4
		var all []*Peers
		for g := range groups {
			all = append(all, newPeersIn(p, g))
			all[g].Start()
		}
		time.Sleep(10*time.Second + timers.HousekeepEvery/2)
		a.mu.Lock()
		b, c := a.count["host-b"], a.count["host-c"]
		a.mu.Unlock()
		require.InDelta(t, 10, len(b), 1, "host-b")
		require.InDelta(t, 8, len(c), 2, "host-c: a question ends after a second")
		heard := 0
		for _, peers := range all {
			if last, ok := peers.Last("b"); ok {
				require.NotSame(t, all[0], peers)
				require.EqualValues(t, 7, last.Index)
				require.Less(t, time.Since(last.At), 2*timers.StatusEvery)
				heard++
			}
			_, ok := peers.Last("c")
			require.False(t, ok)
		}
		require.Equal(t, groups-1, heard)
		for _, n := range b {
			require.Equal(t, groups, n)
		}
		all[0].closeGroup()
		time.Sleep(2 * timers.StatusEvery)
		a.mu.Lock()
		b = a.count["host-b"]
		a.mu.Unlock()
		require.Equal(t, groups-1, b[len(b)-1], "a group that has ended is not asked about")
		for _, peers := range all[1:] {
			peers.closeGroup()
		}
		p.Close()
	})
}

// TestANewGroupIsAskedAboutAtOnce checks that a group does not wait for the next question about all groups.
func TestANewGroupIsAskedAboutAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsks()
		p := newTestHost(a.ask)
		first, second := newPeersIn(p, 0), newPeersIn(p, 1)
		first.Start()
		time.Sleep(3*timers.StatusEvery + timers.HousekeepEvery*3/2)
		second.Start()
		time.Sleep(timers.HousekeepEvery)
		a.mu.Lock()
		b := a.count["host-b"]
		a.mu.Unlock()
		require.Equal(t, 1, b[len(b)-1])
		require.False(t, second.neverAsked(second.one("b")))
		first.closeGroup()
		second.closeGroup()
		p.Close()
	})
}

// TestOneQuestionAtATime checks that a process asks a host nothing while a question to it is under way, even if a new
// group has begun. The new group is asked about afterwards.
func TestOneQuestionAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAsks("host-c")
		p := newTestHost(a.ask)
		first, second := newPeersIn(p, 0), newPeersIn(p, 1)
		first.Start()
		time.Sleep(timers.HousekeepEvery * 3 / 2)
		second.Start()
		time.Sleep(2 * timers.StatusEvery)
		a.mu.Lock()
		most, c := a.most, a.count["host-c"]
		a.mu.Unlock()
		require.Equal(t, 1, most)
		require.Equal(t, []int{1, 2}, c[:2])
		first.closeGroup()
		second.closeGroup()
		p.Close()
	})
}

func (p *Peers) one(id string) *Peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Nodes[id]
}

// TestAnOlderHostIsAskedByEachGroup checks that each group asks on a connection of its own if the other host knows no
// common question.
func TestAnOlderHostIsAskedByEachGroup(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var dialed atomic.Int32
	hub := peer.NewHub(l, peer.HubConfig{
		Logger: slog.New(slog.DiscardHandler),
		Dialer: func(context.Context, string) (net.Conn, error) {
			dialed.Add(1)
			return nil, fmt.Errorf("no network")
		},
	})
	defer hub.Close()
	p := newTestHost(func(context.Context, string, []peer.Question) ([]peer.Answer, error) {
		return nil, peer.ErrNotShared
	})
	defer p.Close()
	peers := newPeersIn(p, 0)
	peers.of.Port, err = hub.Open(0, peer.PortConfig{
		Self: func() peer.Identity { return peer.Identity{NodeID: "a"} }, Logger: slog.New(slog.DiscardHandler),
	}, nil)
	require.NoError(t, err)
	peers.Start()
	require.Eventually(t, func() bool { return dialed.Load() >= 2 }, 10*time.Second, time.Millisecond)
	peers.closeGroup()
}
