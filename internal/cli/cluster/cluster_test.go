package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/weirproc"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/server"
)

func TestMain(m *testing.M) {
	stepEvery = time.Millisecond
	os.Exit(weirproc.Main(m))
}

// clusterNode imitates one node of a cluster: a standalone node with a list of members.
type clusterNode struct {
	limiter.Limiter
	addr string

	mu   sync.Mutex
	topo limiter.Topology
	did  []string
	err  error

	steps int // of moves
}

func (n *clusterNode) Topology() *limiter.Topology {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.topo
	if t.Groups == nil {
		t.Groups = []limiter.Group{{Slots: hashslot.All, Leader: t.Leader, LastLeader: t.LastLeader, Term: t.Term,
			AppliedIndex: t.AppliedIndex, CommitIndex: t.CommitIndex}}
	}
	return &t
}

func (n *clusterNode) do(what ...string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.topo.Leader != n.topo.Self && what[0] != "snapshot" {
		return limiter.ErrNotLeader
	}
	n.did = append(n.did, strings.Join(what, " "))
	return n.err
}

func (n *clusterNode) asked() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.did
}

func (n *clusterNode) ReadIndex() error                   { return nil }
func (n *clusterNode) LeaderOf(uint16) string             { return n.Topology().Leader }
func (n *clusterNode) ReadIndexOf(uint16) error           { return nil }
func (n *clusterNode) StaleForOf(uint16) time.Duration    { return n.StaleFor() }
func (n *clusterNode) LenOf(_ uint16, database int) int64 { return n.Len(database) }
func (n *clusterNode) TransferGroup(int, string) error    { return errors.ErrUnsupported }
func (n *clusterNode) RemoveFromGroup(string, int) error  { return errors.ErrUnsupported }

// MoveReplica makes a move in three steps, of which the first fails once.
func (n *clusterNode) MoveReplica(group int, from, to string) (limiter.Move, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.did = append(n.did, fmt.Sprintf("move %d %s %s", group, from, to))
	switch n.steps++; n.steps % 4 {
	case 1:
		return limiter.Move{}, limiter.ErrTryAgain
	case 2:
		return limiter.Move{Step: "a replica opens on " + to}, nil
	case 3:
		return limiter.Move{Step: "the replica on " + from + " is removed"}, n.err
	}
	n.topo.Groups = slices.Clone(n.topo.Groups)
	g := &n.topo.Groups[group]
	g.Members = slices.DeleteFunc(slices.Clone(g.Members), func(m limiter.GroupMember) bool { return m.ID == from })
	g.Members = append(g.Members, limiter.GroupMember{ID: to, Voter: true})
	return limiter.Move{Done: true}, nil
}

func (n *clusterNode) StaleFor() time.Duration            { return 5 * time.Millisecond }
func (n *clusterNode) AddNode(id, addr string) error      { return n.do("add", id, addr) }
func (n *clusterNode) RemoveNode(id string) error         { return n.do("remove", id) }
func (n *clusterNode) TransferLeadership(to string) error { return n.do("transfer", to) }
func (n *clusterNode) Digest(int) (index, hash uint64)    { return 0, 0 }
func (n *clusterNode) Snapshot() error                    { return n.do("snapshot") }

var _ limiter.Replica = (*clusterNode)(nil)

// startNodes starts the nodes a and b, which both report the given leader.
func startNodes(t *testing.T, leader, password string) map[string]*clusterNode {
	t.Helper()
	nodes, listeners := map[string]*clusterNode{}, map[string]net.Listener{}
	members := []limiter.Member{
		{ID: "a", RaftAddr: "127.0.0.1:7", Voter: true, Up: true, AppliedIndex: 9, Format: 2},
		{ID: "b", RaftAddr: "127.0.0.1:8", Voter: true, Up: true, AppliedIndex: 8, LastHeard: 30 * time.Millisecond,
			Format: 1},
		{ID: "c", RaftAddr: "127.0.0.1:9", AppliedIndex: 2, LastHeard: time.Minute},
	}
	for i, id := range []string{"a", "b"} {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		listeners[id], members[i].ClientAddr = ln, ln.Addr().String()
	}
	log := slog.New(slog.DiscardHandler)
	for id, ln := range listeners {
		node, err := persistence.Open(persistence.Options{Logger: log})
		require.NoError(t, err)
		nodes[id] = &clusterNode{Limiter: node, addr: ln.Addr().String(), topo: limiter.Topology{
			ClusterID: "c1", Self: id, Leader: leader, LastLeader: "a", Term: 3, AppliedIndex: 8, CommitIndex: 9,
			Format: 1, Nodes: members,
		}}
		srv, err := server.New(server.Config{Logger: log, Password: password}, nodes[id])
		require.NoError(t, err)
		ended := make(chan error, 1)
		go func() { ended <- srv.Serve(ln) }()
		t.Cleanup(func() {
			require.NoError(t, srv.Close())
			require.NoError(t, <-ended)
			require.NoError(t, node.Close())
		})
	}
	return nodes
}

func TestClusterStatus(t *testing.T) {
	nodes := startNodes(t, "a", "")
	var out bytes.Buffer
	require.NoError(t, (&statusCmd{}).show(&out, &Command{Addr: nodes["b"].addr}))
	lines := strings.Split(out.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	require.Equal(t, []string{
		"cluster c1", "keys led by a", "log form 1", "asked b, committed 9, applied 8, stale: 5ms", "",
		"NODE ROLE UP CLIENTS NODES APPLIED READS HEARD",
		"a leads 1 of 1 yes " + nodes["a"].addr + " 127.0.0.1:7 9 form 2 0s ago",
		"b follower yes " + nodes["b"].addr + " 127.0.0.1:8 8 form 1 this node",
		"c no vote yet no unknown 127.0.0.1:9 2 unknown 1m0s ago", "",
		"GROUP SLOTS LEADER TERM BEHIND", "0 0-16383 a 3 1", "",
	}, lines)

	out.Reset()
	require.NoError(t, (&statusCmd{JSON: true}).show(&out, &Command{Addr: nodes["b"].addr}))
	var status remote.Status
	require.NoError(t, json.Unmarshal(out.Bytes(), &status))
	require.Equal(t, "b", status.Node)
	require.EqualValues(t, 5, status.StaleMs)
	require.Equal(t, remote.NodeStatus{ID: "b", ClientAddr: nodes["b"].addr, RaftAddr: "127.0.0.1:8", Voter: true,
		Up: true, AppliedIndex: 8, HeardMs: 30, LogFormat: 1}, status.Nodes[1])
	require.False(t, status.Nodes[2].Voter || status.Nodes[2].Up)
}

// TestClusterStatusOfSpreadGroups checks what is shown of groups that are on a part of the nodes.
func TestClusterStatusOfSpreadGroups(t *testing.T) {
	nodes := startNodes(t, "a", "")
	replica := func(id string, voter bool, lag uint64) limiter.GroupMember {
		return limiter.GroupMember{ID: id, Voter: voter, LagEntries: lag}
	}
	nodes["b"].mu.Lock()
	nodes["b"].topo.Replicas = 2
	nodes["b"].topo.Nodes = append(slices.Clone(nodes["b"].topo.Nodes), limiter.Member{ID: "d", Up: true,
		RaftAddr: "127.0.0.1:10", Zone: "z2"})
	nodes["b"].topo.Groups = []limiter.Group{
		{Slots: hashslot.OfGroup(0, 2), Leader: "a", Term: 3, AppliedIndex: 8, CommitIndex: 9,
			Members: []limiter.GroupMember{replica("a", true, 0), replica("b", true, 4)}},
		{Slots: hashslot.OfGroup(1, 2), Leader: "a", Term: 4, AppliedIndex: 5, CommitIndex: 7, Away: true,
			Members: []limiter.GroupMember{replica("a", true, 0), replica("b", false, 6), replica("c", true, 0)}},
	}
	nodes["b"].mu.Unlock()
	var out bytes.Buffer
	require.NoError(t, (&statusCmd{}).show(&out, &Command{Addr: nodes["b"].addr}))
	lines := strings.Split(out.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	require.Equal(t, "keys led by a; 1 of 2 groups have fewer than 2 replicas that are up", lines[1])
	require.Equal(t, []string{
		"NODE ROLE UP CLIENTS NODES APPLIED READS HEARD ZONE",
		"a leads 2 of 2 yes " + nodes["a"].addr + " 127.0.0.1:7 9 form 2 0s ago -",
		"b follower yes " + nodes["b"].addr + " 127.0.0.1:8 8 form 1 this node -",
		"c no vote yet, has 1 of 2 no unknown 127.0.0.1:9 2 unknown 1m0s ago -",
		"d no replicas yes unknown 127.0.0.1:10 0 unknown 0s ago z2", "",
		"GROUP SLOTS LEADER TERM BEHIND REPLICAS",
		"0 0-8191 a 3 1 2 of 2 up: a, b (4 behind)",
		"1 8192-16383 a 4 - 1 of 2 up: a, b (catches up, 6 behind), c (down)", "",
	}, lines[5:])

	out.Reset()
	require.NoError(t, (&statusCmd{JSON: true}).show(&out, &Command{Addr: nodes["b"].addr}))
	var status remote.Status
	require.NoError(t, json.Unmarshal(out.Bytes(), &status))
	require.Equal(t, 2, status.Replicas)
	require.Equal(t, []int{2, 2, 0, 0}, []int{int(*status.Nodes[0].Replicas), int(*status.Nodes[0].Leaders),
		int(*status.Nodes[3].Replicas), int(*status.Nodes[3].Leaders)})
	require.EqualValues(t, 1, *status.Groups[1].ReplicasUp)
	require.True(t, status.Groups[1].Away)
	require.Equal(t, remote.ReplicaStatus{ID: "b", LagEntries: 6}, status.Groups[1].Replicas[1])

	nodes["b"].mu.Lock()
	nodes["b"].topo.Groups[1].Members = nil
	nodes["b"].mu.Unlock()
	out.Reset()
	require.NoError(t, (&statusCmd{}).show(&out, &Command{Addr: nodes["b"].addr}))
	require.Regexp(t, `(?m)^d +replicas unknown `, out.String(), "nobody may take it for empty")
	require.Contains(t, out.String(), "  0 of 2 up: unknown\n")
}

func TestClusterStatusWithoutALeader(t *testing.T) {
	nodes := startNodes(t, "", "")
	var out bytes.Buffer
	require.ErrorContains(t, (&statusCmd{}).show(&out, &Command{Addr: nodes["b"].addr}),
		"1 of 1 groups have no leader: nothing is decided for their keys until")
	require.Contains(t, out.String(), "none, the last was a ")
	require.NotContains(t, out.String(), "leads")
}

func TestClusterStatusOfGroups(t *testing.T) {
	nodes := startNodes(t, "a", "")
	nodes["b"].mu.Lock()
	nodes["b"].topo.Groups = []limiter.Group{
		{Slots: hashslot.OfGroup(0, 2), Leader: "a", LastLeader: "a", Term: 3, AppliedIndex: 8, CommitIndex: 9},
		{Slots: hashslot.OfGroup(1, 2), LastLeader: "b", Term: 4, AppliedIndex: 7, CommitIndex: 7},
	}
	nodes["b"].mu.Unlock()
	var out bytes.Buffer
	require.ErrorContains(t, (&statusCmd{}).show(&out, &Command{Addr: nodes["b"].addr}),
		"1 of 2 groups have no leader: nothing is decided for their keys")
	lines := strings.Split(out.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	require.Equal(t, []string{"cluster c1",
		"keys 1 of 2 groups have no leader: nothing is decided for their keys; led by a",
		"log form 1"}, lines[:3])
	require.Contains(t, lines, "a leads 1 of 2 yes "+nodes["a"].addr+" 127.0.0.1:7 9 form 2 0s ago")
	require.Equal(t, []string{
		"GROUP SLOTS LEADER TERM BEHIND", "0 0-8191 a 3 1", "1 8192-16383 none, the last was b 4 0", "",
	}, lines[len(lines)-4:])

	nodes["b"].mu.Lock()
	nodes["b"].topo.Groups[1].Ended = "it differs"
	nodes["b"].mu.Unlock()
	out.Reset()
	require.NoError(t, (&statusCmd{}).show(&out, &Command{Addr: nodes["b"].addr}),
		"the groups that serve on this node have leaders")
	require.Regexp(t, `(?m)^keys +led by a; 1 of 2 groups have ended on b$`, out.String())
	require.Regexp(t, `(?m)^1 +8192-16383 +ended on b: it differs$`, out.String())
	nodes["b"].mu.Lock()
	nodes["b"].topo.Groups[1].Ended = ""
	nodes["b"].mu.Unlock()

	out.Reset()
	require.Error(t, (&statusCmd{JSON: true}).show(&out, &Command{Addr: nodes["b"].addr}))
	var status remote.Status
	require.NoError(t, json.Unmarshal(out.Bytes(), &status))
	require.Equal(t, remote.GroupStatus{FirstSlot: 8192, LastSlot: 16383, LastLeader: "b", Term: 4, AppliedIndex: 7,
		CommitIndex: 7}, status.Groups[1])
}

func TestClusterChangesGoToTheLeader(t *testing.T) {
	nodes := startNodes(t, "a", "secret")
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	ask := &Command{Addr: nodes["b"].addr, PasswordFile: file}
	require.NoError(t, (&addCmd{ID: "d", RaftAddr: "d:7"}).Run(ask))
	require.NoError(t, (&removeCmd{ID: "c"}).Run(ask))
	require.NoError(t, (&transferCmd{}).Run(ask))
	require.NoError(t, (&transferCmd{ID: "b"}).Run(ask))
	require.NoError(t, (&transferCmd{IfLeading: true}).Run(ask), "b follows")
	require.NoError(t, (&snapshotCmd{}).Run(ask))
	require.Equal(t, []string{"add d d:7", "remove c", "transfer ", "transfer b"}, nodes["a"].asked())
	require.Equal(t, []string{"snapshot"}, nodes["b"].asked())
	require.NoError(t, (&transferCmd{IfLeading: true}).Run(&Command{Addr: nodes["a"].addr, PasswordFile: file}))
	require.Equal(t, "transfer ", nodes["a"].asked()[4])

	nodes["a"].mu.Lock()
	nodes["a"].err = errors.New("d is a member already")
	nodes["a"].mu.Unlock()
	require.EqualError(t, (&addCmd{ID: "d", RaftAddr: "d:7"}).Run(ask),
		nodes["a"].addr+" answers: ERR d is a member already")
	require.ErrorContains(t, (&snapshotCmd{}).Run(&Command{Addr: nodes["b"].addr}), "NOAUTH")
	require.ErrorContains(t, (&snapshotCmd{}).Run(&Command{PasswordFile: file + "x"}), "--password-file: ")
}

// TestClusterChangesEnd checks that a command stops following redirections when two nodes keep naming each other as
// leader.
func TestClusterChangesEnd(t *testing.T) {
	nodes := startNodes(t, "a", "")
	nodes["a"].mu.Lock()
	nodes["a"].topo.Leader = "b"
	nodes["a"].mu.Unlock()
	require.ErrorContains(t, (&transferCmd{}).Run(&Command{Addr: nodes["a"].addr}),
		"the leader changed several times, try again: ")
}

func TestClusterMoved(t *testing.T) {
	for reply, want := range map[string]string{
		"MOVED 0 10.0.0.1:6380": "10.0.0.1:6380", "MOVED 0 2001:db8::1:6380": "[2001:db8::1]:6380", "MOVED 0 here": "",
		"MOVED 0": "", "ERR no": "",
	} {
		addr, ok := remote.MovedTo(fmt.Errorf("a node answers: %w", redis.Error(reply)))
		require.Equal(t, want, addr)
		require.Equal(t, want != "", ok)
	}
}

// TestClusterCommandLine checks the command line against a standalone server, a closed port and a cluster.
func TestClusterCommandLine(t *testing.T) {
	run := func(args ...string) (said string, code int) {
		cmd := weirproc.Command(append([]string{"cluster"}, args...)...)
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	refused := func(why string, args ...string) {
		said, code := run(args...)
		require.NotZero(t, code)
		require.Contains(t, said, why)
	}
	p := weirproc.Start(t)
	refused(p.Addr+" answers: ERR This instance has cluster support disabled", "status", "--addr", p.Addr)
	p.Kill()
	refused("cannot reach a server at "+p.Addr+" (--addr)", "--addr", p.Addr, "transfer")
	refused(`expected "<raft-addr>"`, "add", "d")

	nodes := startNodes(t, "a", "")
	said, code := run("status", "--addr", nodes["a"].addr)
	require.Zero(t, code, said)
	require.Contains(t, said, "led by a")
	said, code = run("add", "d", "d:6390", "--addr", nodes["b"].addr)
	require.Zero(t, code, said)
	require.Equal(t, "d was added\n", said)
}
