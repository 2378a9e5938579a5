package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/certs/certtest"
	"github.com/weir-project/weir/internal/cli/remote"
)

// slowMachine matches warnings that are right on a machine that has much more to do than it can: they do not come from
// the stop.
var slowMachine = regexp.MustCompile(`"the disk has not finished a write|"the TLS handshake .* i/o timeout"`)

// alarms returns the log lines above the level of information, without those about a slow machine.
func alarms(t *testing.T, log string) (lines []string) {
	t.Helper()
	for line := range strings.Lines(log) {
		var record struct{ Level string }
		require.NoError(t, json.Unmarshal([]byte(line), &record), line)
		if (record.Level == "WARN" || record.Level == "ERROR") && !slowMachine.MatchString(line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// occupy connects three clients: one is idle, one monitors, and one waits for units.
func occupy(p *process) {
	p.t.Helper()
	require.NoError(p.t, second(p.dial().Do("PING")))
	watcher := p.dial()
	require.NoError(p.t, watcher.Send("MONITOR"))
	require.NoError(p.t, watcher.Flush())
	require.Eventually(p.t, func() bool {
		_, err := p.dial().Do("RL.FIXED", "taken", "1d", 1, "FIRST")
		return err == nil
	}, patience, 10*time.Millisecond, "a single node must elect itself")
	waiter := p.dial()
	require.NoError(p.t, waiter.Send("RL.WAIT", "RL.FIXED", "taken", "1d", 1, "FIRST", "TIMEOUT", "1h"))
	require.NoError(p.t, waiter.Flush())
	require.Eventually(p.t, func() bool {
		info, err := redis.String(p.do("INFO", "clients"), nil)
		return err == nil && strings.Contains(info, "blocked_clients:1")
	}, patience, 10*time.Millisecond, "the server must report a waiting client")
}

func second[T any](_ T, err error) error { return err }

func TestACleanStopLogsInformationOnly(t *testing.T) {
	ca := certtest.NewCA(t, "ca")
	for name, args := range map[string][]string{
		"plain": nil,
		"TLS": certFlags(ca.Issue("weir", nil), "--tls-listen=127.0.0.1:0", "--tls-auth-clients=no", "--http-tls",
			"--rls=127.0.0.1:0"),
		"fsync": {"--durability=fsync", "--raft-addr=127.0.0.1:0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, args...)
			if addr := p.said("tls_listen"); addr != "" {
				conn, err := (&remote.Flags{TLS: true, TLSCAFile: ca.File}).Dial(addr, "")
				require.NoError(t, err)
				defer conn.Close()
			}
			occupy(p)
			p.signal(syscall.SIGINT)
			require.Zero(t, p.wait())
			require.Empty(t, alarms(t, p.output()))
		})
	}
}

// TestACleanStopOfAClusterLogsInformationOnly checks that a cluster starts and stops without a warning, in whatever
// order its nodes stop. The leader is first in the list of nodes.
func TestACleanStopOfAClusterLogsInformationOnly(t *testing.T) {
	nodesCA := certtest.NewCA(t, "nodes")
	withTLS := func(id string) []string {
		f := nodesCA.Issue(id, nil)
		return []string{"--raft-tls-cert-file=" + f.Cert, "--raft-tls-key-file=" + f.Key,
			"--raft-tls-ca-file=" + nodesCA.File}
	}
	turns := make(chan struct{}, 2) // more clusters at once starve each other, and rightly warn of it
	for name, stop := range map[string]func([]*process){
		"at once":           interruptAll,
		"leader first":      oneByOne,
		"leader last":       func(nodes []*process) { slices.Reverse(nodes); oneByOne(nodes) },
		"leader in between": func(nodes []*process) { nodes[0], nodes[1] = nodes[1], nodes[0]; oneByOne(nodes) },
	} {
		for kind, more := range map[string]func(string) []string{"": func(string) []string { return nil },
			" with TLS": withTLS} {
			t.Run(name+kind, func(t *testing.T) {
				t.Parallel()
				turns <- struct{}{}
				defer func() { <-turns }()
				nodes := startCluster(t, 3, more, steadily)
				for i, p := range nodes {
					require.NoError(t, second(p.dial().Do("PING")))
					require.EqualValues(t, 1, p.five("RL.FIXED", fmt.Sprint("key", i), "1d", 1)[0])
				}
				occupy(nodes[0])
				stop(nodes)
				for _, p := range nodes {
					require.Empty(t, alarms(t, p.output()))
				}
			})
		}
	}
}

// interruptAll stops all nodes at once, like a Ctrl-C.
func interruptAll(nodes []*process) {
	for _, p := range nodes {
		p.signal(syscall.SIGINT)
	}
	for _, p := range nodes {
		require.Zero(p.t, p.wait(), p.output())
	}
}

// oneByOne stops each node after the previous one has ended.
func oneByOne(nodes []*process) {
	for _, p := range nodes {
		p.signal(syscall.SIGINT)
		require.Zero(p.t, p.wait(), p.output())
	}
}

// TestAKilledNodeIsWarnedOf checks that the others warn about a killed node, because it announced no stop.
func TestAKilledNodeIsWarnedOf(t *testing.T) {
	nodes := startCluster(t, 3, steadily)
	warned := func() bool {
		return slices.ContainsFunc(
			alarms(t, nodes[0].output()), func(line string) bool { return strings.Contains(line, "raft: failed to") })
	}
	require.False(t, warned())
	nodes[2].signal(syscall.SIGKILL)
	nodes[2].wait()
	require.Eventually(t, warned, patience, 10*time.Millisecond)
}
