package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/cluster"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/freeport"
)

// TestANodeJoinsEveryGroup checks that a node joins a cluster of four Raft groups at its first start without --groups,
// and becomes a member of every group.
func TestANodeJoinsEveryGroup(t *testing.T) {
	if testing.Short() {
		t.Skip("starts four nodes")
	}
	nodes := startCluster(t, 3, func(string) []string { return []string{"--groups=4"} })
	status, err := (&cluster.Command{Addr: nodes[0].addr}).AskStatus()
	require.NoError(t, err)
	var join []string
	for _, n := range status.Nodes {
		join = append(join, n.RaftAddr)
	}
	ready := make(chan map[string]any, 1)
	p := launchCommand(t, ready, exec.Command(binary), "--node-id=joining", "--data-dir="+t.TempDir(),
		"--raft-addr="+freeport.Addr(t), "--join="+strings.Join(join, ","))
	select {
	case line := <-ready:
		p.addr = line["listen"].(string)
	case <-p.ended:
		t.Fatalf("the node ended instead of joining:\n%s", p.output())
	case <-time.After(patience):
		t.Fatalf("the node does not become ready:\n%s", p.output())
	}
	require.Eventually(t, func() bool {
		status, err := (&cluster.Command{Addr: p.addr}).AskStatus()
		return err == nil && len(status.Groups) == 4 && votesAndLed(&status, "joining")
	}, patience, 10*time.Millisecond)
	require.Contains(t, p.output(), `"groups":4,"replicas":0`)
}

// votesAndLed reports whether a node votes in every group of a cluster, and every group has a leader.
func votesAndLed(s *remote.Status, id string) bool {
	for i := range s.Groups {
		if s.Groups[i].Leader == "" {
			return false
		}
	}
	for i := range s.Nodes {
		if s.Nodes[i].ID == id {
			return s.Nodes[i].Voter
		}
	}
	return false
}
