package commands

import (
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/servertest"
)

func TestWeirClusterStatus(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.SetAge(3 * time.Millisecond)
	c, _ := clusterClient(t, f, "b", Config{})
	assert.Equal(t, "cluster_id c1 node b leader a last_leader a term 7 applied_index 40 commit_index 42 stale_ms 3 "+
		"log_format 1 nodes"+
		" id a client_addr 10.0.0.1:6380 raft_addr 10.0.0.1:6390 voter 1 up 1 applied_index 42 heard_ms 0 "+
		"lag_entries 0 clock_ahead_ms 0 log_format 2"+
		" id b client_addr 10.0.0.2:6380 raft_addr 10.0.0.2:6391 voter 1 up 1 applied_index 41 heard_ms 1000 "+
		"lag_entries 1 clock_ahead_ms 0 log_format 1"+
		" id c client_addr c.example:6380 raft_addr c.example:6392 voter 1 up 1 applied_index 42 heard_ms 2000 "+
		"lag_entries 0 clock_ahead_ms 0 log_format 0"+
		" groups first_slot 0 last_slot 16383 leader a last_leader a term 7 applied_index 40 commit_index 42 ended ",
		c.say("WEIR.CLUSTER STATUS"))
	c.say("HELLO 3")
	assert.True(t, strings.HasPrefix(c.raw("weir.cluster", "status"), "%11\r\n"))
}

const badAddr = "-ERR addr must be the --raft-addr of the node, like 10.0.0.1:6390, not "

func TestWeirClusterChanges(t *testing.T) {
	f := servertest.NewFakeCluster()
	leader, _ := clusterClient(t, f, "a", Config{})
	follower, _ := clusterClient(t, f, "b", Config{})
	for _, send := range []string{"ADD d 10.0.0.4:6390", "REMOVE c", "TRANSFER", "TRANSFER b"} {
		assert.Equal(t, "-MOVED 0 10.0.0.1:6380", follower.say("WEIR.CLUSTER "+send), send)
		assert.Equal(t, "OK", leader.say("weir.cluster "+send), send)
	}
	assert.Equal(t, "OK", follower.say("WEIR.CLUSTER SNAPSHOT"), "a follower must take its own snapshot")
	assert.Equal(t, []string{"add d 10.0.0.4:6390", "remove c", "transfer ", "transfer b", "snapshot"}, f.Asked())
	for send, want := range map[string]string{
		"ADD d 10.0.0.4":                    badAddr + "'10.0.0.4'",
		"ADD d :6390":                       badAddr + "':6390'",
		"ADD d host:0":                      badAddr + "'host:0'",
		"ADD d 0.0.0.0:6390":                badAddr + "'0.0.0.0:6390'",
		"ADD d host:65536":                  badAddr + "'host:65536'",
		`ADD "" host:1`:                     "-ERR id must be 1 to 64 bytes, not 0",
		`ADD "a b" host:1`:                  "-ERR Node ids cannot contain spaces, newlines or special characters.",
		"REMOVE " + strings.Repeat("x", 65): "-ERR id must be 1 to 64 bytes, not 65",
		`TRANSFER ""`:                       "-ERR id must be 1 to 64 bytes, not 0",
		"TRANSFER a b":                      "-" + string(arg.ErrSyntax) + ": WEIR.CLUSTER TRANSFER [id [GROUP n]]",
		"SPLIT":                             "-ERR unknown subcommand 'SPLIT'. Try WEIR.CLUSTER HELP.",
		"REMOVE": "-ERR wrong number of arguments for 'weir.cluster|remove' command: " +
			"WEIR.CLUSTER REMOVE id",
	} {
		assert.Equal(t, want, leader.say("WEIR.CLUSTER "+send), send)
	}
	assert.Len(t, f.Asked(), 5)
}

func TestWeirClusterErrors(t *testing.T) {
	f := servertest.NewFakeCluster()
	c, _ := clusterClient(t, f, "a", Config{})
	for err, want := range map[error]string{
		servertest.ErrFake:        "-ERR the fake refuses",
		limiter.ErrTryAgain:       "-TRYAGAIN not applied, send it again",
		limiter.ErrClusterDown:    "-CLUSTERDOWN the cluster has no leader, nothing was counted",
		limiter.ErrUnknownOutcome: "-UNKNOWN no answer in time, it may have been counted",
		limiter.ErrNoDisk:         "-ERR " + limiter.ErrNoDisk.Error(),
		limiter.ErrNotLeader:      "-TRYAGAIN this node is not the leader, nothing was changed",
	} {
		f.SetFail(err)
		assert.Equal(t, want, c.say("WEIR.CLUSTER REMOVE b"))
	}
	f.Lead("")
	assert.Equal(t, "-TRYAGAIN this node is not the leader, nothing was changed", c.say("WEIR.CLUSTER REMOVE b"))

	alone := defaultClient(t)
	for _, send := range []string{"STATUS", "ADD a b:1", "REMOVE a", "TRANSFER", "SNAPSHOT"} {
		assert.Equal(t, "-"+string(errNoCluster), alone.say("WEIR.CLUSTER "+send), send)
	}
}

func TestClusterReadiness(t *testing.T) {
	f := servertest.NewFakeCluster()
	srv, err := NewShared(silent(Config{}), f.Node("b"))
	require.NoError(t, err)
	h := newHTTP(srv)
	ready := func(status int, want string) {
		t.Helper()
		w := ask(h, http.MethodGet, "/readyz")
		assert.Equal(t, want, w.Body.String())
		assert.Equal(t, status, w.Code)
		assert.Equal(t, http.StatusOK, ask(h, http.MethodGet, "/livez").Code)
	}
	ready(http.StatusOK, "[+]node ok\n[+]leader ok (a)\n[+]state ok\n")
	f.Lead("")
	f.SetAge(1500 * time.Millisecond)
	ready(http.StatusServiceUnavailable,
		"[+]node ok\n[-]leader none\n[-]state may be 1500 ms old: no majority of any group can be reached\n")
	f.Lead("c")
	ready(http.StatusOK, "[+]node ok\n[+]leader ok (c)\n[+]state ok\n")
	f.SetDown(limiter.ErrTryAgain)
	ready(http.StatusServiceUnavailable,
		"[+]node ok\n[+]leader ok (c)\n[-]state may be 1500 ms old: no majority of any group can be "+
			"reached\n")
	f.SetDown(nil)
	f.Lead("a")
	f.Change(func(t *limiter.Topology) { t.Nodes = t.Nodes[:1] })
	ready(http.StatusServiceUnavailable, "[-]node not a member of the cluster yet\n[+]leader ok (a)\n[+]state ok\n")
	f.Change(func(t *limiter.Topology) { t.Nodes[0].ClientAddr = "" })
	ready(http.StatusServiceUnavailable,
		"[-]node not a member of the cluster yet\n[-]leader a, whose client address is not known yet\n[+]state ok\n")
	stopServing(srv)
	ready(http.StatusServiceUnavailable,
		"[-]node draining\n[-]leader a, whose client address is not known yet\n[+]state ok\n")
}

func TestClusterMetrics(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.SetAge(1500 * time.Millisecond)
	f.Change(func(t *limiter.Topology) { t.Nodes[2].Up = false })
	page := func(id string) string {
		srv, err := NewShared(silent(Config{}), f.Node(id))
		require.NoError(t, err)
		return ask(newHTTP(srv), http.MethodGet, "/metrics").Body.String()
	}
	leader, follower := page("a"), page("b")
	for _, want := range []string{"weir_cluster_is_leader 1\n", "weir_cluster_stale_seconds 1.5\n"} {
		assert.Contains(t, leader, want)
	}
	for _, want := range []string{
		"weir_cluster_is_leader 0\n", "weir_cluster_has_leader 1\n", "weir_cluster_term 7\n",
		"weir_cluster_applied_index 40\n",
		"weir_cluster_commit_index 42\n", "weir_cluster_stale_seconds 1.5\n", "weir_cluster_nodes 3\n",
		"weir_cluster_nodes_up 2\n",
	} {
		assert.Contains(t, follower, want)
	}
	alone, err := NewShared(silent(Config{}), servertest.NewTableLimiter())
	require.NoError(t, err)
	assert.NotContains(t, ask(newHTTP(alone), http.MethodGet, "/metrics").Body.String(), "weir_cluster_")
}

// TestWeirClusterMove checks the replies of a step, and that the log has what has begun and not each wait for it: a
// caller repeats the command several times a second.
func TestWeirClusterMove(t *testing.T) {
	f := servertest.NewFakeCluster()
	f.Split("a", "b")
	node, log := f.Node("a"), new(strings.Builder)
	srv, err := NewShared(Config{Logger: slog.New(slog.NewTextHandler(log, nil))}, node)
	require.NoError(t, err)
	c := (&testServer{Shared: srv}).client(t)
	for _, step := range []struct {
		move limiter.Move
		says string
		logs int
	}{
		{limiter.Move{Step: "it begins"}, "done 0 step it begins", 1},
		{limiter.Move{Step: "it waits", Waits: true}, "done 0 step it waits", 0},
		{limiter.Move{Done: true}, "done 1 step ", 0},
	} {
		node.Step = step.move
		log.Reset()
		assert.Equal(t, step.says, c.say("WEIR.CLUSTER MOVE 1 - c"))
		assert.Equal(t, step.logs, strings.Count(log.String(), "a replica moves"), step.says)
	}
	require.Equal(t, []string{"move 1  c", "move 1  c", "move 1  c"}, f.Asked())
	for send, want := range map[string]string{
		"MOVE 2 a b":                          "-ERR group must be a number from 0 to 1, not '2'",
		"MOVE -1 a b":                         "-ERR group must be a number from 0 to 1, not '-1'",
		"MOVE 0 a " + strings.Repeat("x", 65): "-ERR id must be 1 to 64 bytes, not 65",
	} {
		assert.Equal(t, want, c.say("WEIR.CLUSTER "+send), send)
	}
	require.Len(t, f.Asked(), 3, "nothing was asked for")
}
