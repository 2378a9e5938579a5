package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/cluster"
	"github.com/weir-project/weir/internal/cli/healthcheck"
	"github.com/weir-project/weir/internal/cli/policy"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/freeport"
)

// steady is the heartbeat of a cluster whose leader must stay although the machine is busy. With the default, a node
// that gets no turn for 750 ms stands for election.
const steady = "--raft-heartbeat=5s"

func steadily(string) []string { return []string{steady} }

// startCluster starts a cluster, and returns the leader first. more returns further arguments of a node.
func startCluster(t *testing.T, size int, more ...func(id string) []string) []*process {
	t.Helper()
	rafts := freeport.Addrs(t, size)
	nodes := make([]*process, size)
	ready := make([]chan map[string]any, size)
	for i := range size {
		ready[i] = make(chan map[string]any, 1)
		id := fmt.Sprintf("n%d", i)
		args := []string{"--node-id=" + id, "--data-dir=" + t.TempDir(), "--raft-addr=" + rafts[i],
			"--join=" + strings.Join(rafts, ","), fmt.Sprintf("--expect=%d", size)}
		for _, f := range more {
			args = append(args, f(id)...)
		}
		nodes[i] = launchCommand(t, ready[i], exec.Command(binary), args...)
	}
	for i, p := range nodes {
		select {
		case line := <-ready[i]:
			p.addr, p.web = line["listen"].(string), line["http"].(string)
		case <-time.After(patience):
			t.Fatalf("a node does not become ready:\n%s", p.output())
		}
	}
	for i, p := range nodes {
		require.Eventually(t, func() bool {
			return (&healthcheck.Command{HTTP: strings.TrimPrefix(p.web, "http://")}).Ask(io.Discard) == nil
		}, patience, 10*time.Millisecond)
		leads := false
		require.Eventually(t, func() bool {
			status, err := (&cluster.Command{Addr: p.addr}).AskStatus()
			leads = err == nil && status.Leader == status.Node
			return err == nil && status.Leader != ""
		}, patience, 10*time.Millisecond)
		if leads {
			nodes[0], nodes[i] = nodes[i], nodes[0]
		}
	}
	return nodes
}

// TestPolicyDiffAtAFollowerKnowsWhatWasApplied applies policies at one node. At any other node diff must find no
// difference.
func TestPolicyDiffAtAFollowerKnowsWhatWasApplied(t *testing.T) {
	nodes := startCluster(t, 3, steadily)
	path := filepath.Join(t.TempDir(), "policies.yaml")
	for i := range 20 {
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(loginPolicy, "5", fmt.Sprint(5+i), 1)), 0o600))
		require.NoError(t, (&policy.ApplyCmd{Server: remote.Server{Addr: nodes[i%3].addr}, File: path}).Apply(
			io.Discard))
		var out bytes.Buffer
		require.NoError(t, (&policy.DiffCmd{Server: remote.Server{Addr: nodes[1+i%2].addr}, File: path}).Diff(&out),
			"round %d: %s", i, &out)
	}
	var said bytes.Buffer
	cmd := exec.Command(binary, "policy", "diff", "-f", path, "--addr="+nodes[1].addr)
	cmd.Stderr = &said
	require.NoError(t, cmd.Run())
	leader, err := (&cluster.Command{Addr: nodes[0].addr}).AskStatus()
	require.NoError(t, err)
	require.Regexp(t, "^answered by n[0-2] at "+nodes[1].addr+"; led by "+leader.Leader+"\n$", said.String())
}
