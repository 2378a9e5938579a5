package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// replaced writes a file as most tools do: another file is renamed over it.
func replaced(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

// awaits waits until the log of a process has a text so many times.
func (p *process) awaits(text string, times int) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { return strings.Count(p.output(), text) >= times }, patience,
		10*time.Millisecond, "%q %d times", text, times)
}

// limitPolicy is a policy file with one policy of one limit.
func limitPolicy(name string, limit int) string {
	return fmt.Sprintf("policies:\n  %s:\n    limits: [FIXED FOREVER %d]\n", name, limit)
}

// policyLimit returns the limit of a policy.
func (p *process) policyLimit(name string) int64 {
	p.t.Helper()
	reply, err := redis.Values(p.do("RL.CHECK", name, "k", "COST", "0"), nil)
	require.NoError(p.t, err)
	return reply[4].(int64)
}

// TestPolicyFilesAreFollowed checks that a server follows the files of a directory without a signal. A bad file changes
// nothing, is logged and counted once, and is a warning in the metrics until it is replaced.
func TestPolicyFilesAreFollowed(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yml")
	replaced(t, a, limitPolicy("login", 5))
	replaced(t, b, "owner: team-b\n"+limitPolicy("search", 7))
	p := start(t, "--policies", dir)
	metric := func(line string) { t.Helper(); require.Contains(t, get(t, p.web+"/metrics"), line+"\n") }
	require.EqualValues(t, 5, p.policyLimit("login"))
	require.EqualValues(t, 7, p.policyLimit("search"))
	metric(`weir_config_refused{source="policies"} 0`)

	replaced(t, b, "owner: team-b\n"+limitPolicy("search", 70))
	p.awaits("the policies of the file are applied", 2)
	require.EqualValues(t, 70, p.policyLimit("search"))

	replaced(t, b, limitPolicy("login", 6))
	p.awaits("b.yml:2: policy login is also in "+a, 1)
	require.EqualValues(t, 5, p.policyLimit("login"))
	metric(`weir_config_refused{source="policies"} 1`)
	metric(`weir_config_contents_total{result="refused",source="policies"} 1`)
	metric(`weir_config_contents_total{result="applied",source="policies"} 2`)

	require.NoError(t, os.Remove(a))
	p.awaits("the policies of the file are applied", 3)
	require.EqualValues(t, 6, p.policyLimit("login"))
	require.EqualValues(t, 70, p.policyLimit("search"), "a policy that no file names stays")
	metric(`weir_config_refused{source="policies"} 0`)
	require.Equal(t, 1, strings.Count(p.output(), "no policy was changed"), "a bad content is logged once")
	p.stop()
}

// TestNodesWithDifferentPolicyFiles checks that nodes whose files differ during a rollout do not undo each other's
// changes in turn. A node applies its file when its content changes, and a content that it applied before is no change.
func TestNodesWithDifferentPolicyFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(id string) string { return filepath.Join(dir, id+".yaml") }
	for _, id := range []string{"n0", "n1", "n2"} {
		replaced(t, file(id), limitPolicy("login", 1))
	}
	byID := map[string]*process{}
	nodes := startCluster(t, 3, func(id string) []string { return []string{"--policies", file(id)} })
	for _, p := range nodes {
		p.awaits("the policies of the file are applied", 1)
		for _, id := range []string{"n0", "n1", "n2"} {
			if strings.Contains(strings.Join(p.cmd.Args, " "), file(id)) {
				byID[id] = p
			}
		}
	}

	replaced(t, file("n0"), limitPolicy("login", 2))
	byID["n0"].awaits("the policies of the file are applied", 2)
	require.EqualValues(t, 2, nodes[2].policyLimit("login"))

	replaced(t, file("n1"), "not a policy file")
	byID["n1"].awaits("no policy was changed", 1)
	replaced(t, file("n1"), limitPolicy("login", 1))
	byID["n1"].awaits("again as it was", 1)
	require.EqualValues(t, 2, nodes[2].policyLimit("login"), "n1 has applied this content before")

	for _, id := range []string{"n1", "n2"} {
		before := strings.Count(byID[id].output(), "the policies of the file are applied")
		replaced(t, file(id), limitPolicy("login", 2))
		byID[id].awaits("the policies of the file are applied", before+1)
	}
	require.EqualValues(t, 2, nodes[2].policyLimit("login"))
	for _, p := range nodes {
		p.stop()
	}
}

// fullServer refuses every policy.
type fullServer struct{ oldCluster }

func (*fullServer) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	for i := range ops {
		out[i].Status = engine.PoliciesFull
	}
	return nil
}

// TestPoliciesThatDoNotFit checks that a content of which a part is refused counts as refused, also when a worse
// content comes and goes.
func TestPoliciesThatDoNotFit(t *testing.T) {
	path := configWith(t, loginPolicy)
	l, err := openPolicies(path, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	require.NoError(t, l.apply(new(fullServer)))
	require.True(t, l.stats.Bad.Load())
	require.EqualValues(t, 1, l.stats.Refused.Load())
	for _, text := range []string{"worse", loginPolicy} {
		replaced(t, path, text)
		require.False(t, l.poll())
		require.False(t, l.poll())
	}
	require.True(t, l.stats.Bad.Load())
	require.EqualValues(t, 2, l.stats.Refused.Load())
}

// TestABadFileDoesNotEndAWait checks that the last valid content is still applied when a bad content comes before the
// cluster has a leader.
func TestABadFileDoesNotEndAWait(t *testing.T) {
	path := configWith(t, loginPolicy)
	var said bytes.Buffer
	l, err := openPolicies(path, slog.New(slog.NewTextHandler(&said, nil)))
	require.NoError(t, err)
	node := &oldCluster{tries: 2}
	done, hangup := make(chan struct{}), make(chan os.Signal)
	ended := make(chan struct{})
	go func() { l.run(node, true, hangup, done); close(ended) }()
	require.NoError(t, os.WriteFile(path, []byte("bad"), 0o600))
	for range 3 {
		hangup <- nil // apply is tried before each of them
	}
	close(done)
	<-ended
	require.Contains(t, said.String(), "the policies of the file are applied")
}
