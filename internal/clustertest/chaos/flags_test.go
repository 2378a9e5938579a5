package chaos

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// These flags default to a run that fits CI. They also select a long run, or a run that repeats a seed.
var (
	duration = flag.Duration("chaos.duration", time.Minute,
		"how long TestChaos lets clients work while it breaks things")
	seed      = flag.Uint64("chaos.seed", 0, "seed of the schedule; 0 takes one from the clock and prints it")
	nodes     = flag.Int("chaos.nodes", 3, "nodes of the cluster")
	heartbeat = flag.Duration("chaos.heartbeat", 200*time.Millisecond,
		"--raft-heartbeat of the nodes, but in TestFailover")
	pauses = flag.Int("chaos.pauses", 10, "how often TestPauses pauses the leader")
	repeat = flag.Int(
		"chaos.repeat", 3, "how often TestFailover kills the leader, and TestSilence repeats each fault")
	silence = flag.Bool("chaos.silence", false,
		"run TestSilence: how long no decision comes after frozen and slow disks, pauses, kills and power losses")
	rounds = flag.Int("chaos.rounds", 3,
		"how often TestShared pauses or kills a node while clients change what all groups share")
	moved = flag.Int("chaos.moves", 8,
		"how many replicas TestMovesUnderKills moves; with 16 each victim is killed after each step of a move")
	grown = flag.Int("chaos.grown", 4, "groups of TestGrowAndShrink, a power of two")
	calm  = flag.Duration("chaos.calm", 2*time.Second,
		"how long TestGrowAndShrink measures decisions before moves and after them")
	founded   = flag.Int("chaos.founded", 2, "clusters that TestFoundingUnderKills founds")
	spenders  = flag.Int("chaos.spenders", 2, "clients of TestChaos and TestGroups that cross thresholds; 0: none")
	mutations = flag.Bool(
		"chaos.mutations", false, "run TestMutations: servers with known mistakes, which the harness has to find")
	artifacts = flag.String("chaos.artifacts", "",
		"directory for logs and data of the nodes; empty takes a temporary one, which is kept when a test fails")
	binary = flag.String("chaos.binary", "", "server program; empty builds it from this module")
	extra  = flag.String("chaos.args", "", "more arguments for every node, separated by spaces")
)

// built is the server program. It is built once for all tests.
var built struct {
	sync.Once
	path, dir string
	err       error
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// program returns the server program of the tests.
func program(t *testing.T) string {
	t.Helper()
	if *binary != "" {
		return *binary
	}
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "weir-chaos-binary-"); built.err == nil {
			built.path, built.err = Build(built.dir)
		}
	})
	require.NoError(t, built.err)
	return built.path
}

// workDir returns the directory of a test's logs and data. It is removed if the test passes.
func workDir(t *testing.T) string {
	t.Helper()
	if *artifacts != "" {
		dir := filepath.Join(*artifacts, strings.ReplaceAll(t.Name(), "/", "-"))
		require.NoError(t, os.RemoveAll(dir))
		require.NoError(t, os.MkdirAll(dir, 0o755))
		return dir
	}
	dir, err := os.MkdirTemp("", "weir-chaos-")
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			fmt.Printf("logs and data are kept in %s\n", dir)
			return
		}
		os.RemoveAll(dir)
	})
	return dir
}

// theSeed returns the seed of the flag, or a new seed without one.
func theSeed() uint64 {
	if *seed != 0 {
		return *seed
	}
	return uint64(time.Now().UnixNano())
}

// config returns a cluster of n nodes for a test.
func config(t *testing.T, n int, heartbeat time.Duration) ClusterConfig {
	t.Helper()
	return ClusterConfig{Binary: program(t), Dir: workDir(t), Nodes: n, Heartbeat: heartbeat,
		Args: strings.Fields(*extra)}
}

// skipShort skips tests that start servers.
func skipShort(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts real servers and takes a while: not with -short")
	}
}
