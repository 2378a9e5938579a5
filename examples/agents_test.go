package examples

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// TestAgents lets 64 agents spend one budget, whose worst run costs a hundred times the mean, while the leader of three
// nodes is killed for every tenth of it.
func TestAgents(t *testing.T) {
	needExamples(t)
	t.Run("Python", func(t *testing.T) {
		need(t, "on Debian: apt install python3-venv", "python3")
		spend(t, "python3 -m venv venv && venv/bin/pip install --quiet --requirement requirements.txt",
			"venv/bin/python", "agents.py")
	})
	t.Run("Node", func(t *testing.T) {
		need(t, "on Debian: apt install nodejs npm", "node", "npm")
		spend(t, "npm install --silent", "node", "agents.mjs")
	})
}

func spend(t *testing.T, install string, argv ...string) {
	const budget, agents, step = 100_000, 64, 50
	dir := copied(t, "agents", nil)
	setUp := exec.CommandContext(t.Context(), "sh", "-c", install)
	setUp.Dir = dir
	out, err := setUp.CombinedOutput()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: the agents cannot be installed: %v\n%s", err, out)
	}
	require.NoError(t, err, "%s", out)

	cluster := weirproc.StartCluster(t, "--policies", "../docs/examples/agents.yaml")
	require.Eventually(t, func() bool { // once all nodes have said what they know
		rdb := cluster.Leader().Redis()
		defer func() { _ = rdb.Close() }()
		return rdb.Do(t.Context(), "RL.RESERVE", "month", "{other}", 1, "1s", "EXPIRE", "take").Err() == nil
	}, weirproc.Wait, 10*time.Millisecond)
	fleet := exec.CommandContext(t.Context(), argv[0], argv[1], "acme", "64")
	var said, failed bytes.Buffer
	fleet.Dir, fleet.Stdout, fleet.Stderr = dir, &said, &failed
	fleet.Env = append(os.Environ(), "WEIR="+strings.Join(cluster.Addrs(), ","))
	require.NoError(t, fleet.Start())
	ended := make(chan error, 1)
	go func() { ended <- fleet.Wait() }()
	kills := 0
	for before, going := int64(budget), true; going; {
		select {
		case err = <-ended:
			going = false
		case <-time.After(10 * time.Millisecond):
			if left, err := leftOf(t, cluster.Leader()); err == nil && left < before-budget/10 {
				cluster.KillLeader().Start()
				before, kills = left, kills+1
			}
		}
	}
	require.NoError(t, err, "%s", failed.String())

	var spent struct {
		AtDenial int64 `json:"used at the first denial"`
		Used     int64 `json:"used"`
	}
	require.NoError(t, json.Unmarshal(said.Bytes(), &spent))
	left, err := leftOf(t, cluster.Leader())
	require.NoError(t, err)
	t.Logf("%d kills: %d of %d units were used at the first denial, %d in the end", kills, spent.AtDenial, budget,
		spent.Used)
	require.Equal(t, int64(budget)-spent.Used, left, "weir counts what the agents used")
	require.LessOrEqual(t, spent.Used, int64(budget))
	require.GreaterOrEqual(t, spent.AtDenial, int64(budget-agents*step))
	require.GreaterOrEqual(t, kills, 1)
}

// leftOf returns how much of the team's budget is left.
func leftOf(t *testing.T, node *weirproc.Server) (int64, error) {
	rdb := node.Redis()
	defer func() { _ = rdb.Close() }()
	answer, err := rdb.Do(t.Context(), "RL.CHECK", "month", "{acme}", "COST", 0).Slice()
	if err != nil {
		return 0, err
	}
	return answer[1].(int64), nil
}
