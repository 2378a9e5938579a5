package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// nodeGreeting is the first message of a node. A peer without the secret cannot answer the challenge that follows.
var nodeGreeting = "weir-node\x01C" + strings.Repeat("n", 16) + "\x01x\x00"

// TestHandshakeFloodKeepsNoNodeOut checks a cluster whose inter-node ports are flooded. One address holds as many
// handshakes as possible at each node. Every node must still decide, and every killed node must come back.
func TestHandshakeFloodKeepsNoNodeOut(t *testing.T) {
	const nodes = 3
	n := floodConns(t)
	var files unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &files))
	n = min(n, (int(min(files.Cur, 1<<20))-1000)/nodes) // the test holds the other ends
	m := startMachines(t, nodes, steady)
	var floods []*flood
	resident, open := make([]int, nodes), make([]int, nodes)
	for i, p := range m.nodes {
		resident[i], open[i] = p.takes(t)
		f := startFlood(t.Context(), m.raftAddr(i), n, []opening{
			{}, {nodeGreeting[:5], ""}, {nodeGreeting[:12], "n"}, {nodeGreeting, ""},
		})
		defer f.stop()
		floods = append(floods, f)
	}
	for _, f := range floods {
		require.Eventually(t, func() bool { return f.tried.Load() > int64(2*n) }, patience, 10*time.Millisecond)
	}
	var honest, probes, asked, held, grown int
	ask := func() {
		for i, p := range m.nodes {
			asked++
			if err := p.probe("/readyz")(); err != nil {
				t.Logf("node %d: GET /readyz: %v", i, err)
			} else {
				probes++
			}
			if err := p.decide(p.addr, "", nil)(); err != nil {
				t.Logf("node %d: %v", i, err)
			} else {
				honest++
			}
			bytes, files := p.takes(t)
			held, grown = max(held, files-open[i]), max(grown, bytes-resident[i])
		}
	}
	for range floodRounds {
		ask()
	}
	for i := range m.nodes {
		m.kill(i)
		m.start(i)
		for _, p := range m.nodes {
			require.Eventually(t, func() bool {
				return p.probe("/readyz")() == nil && p.decide(p.addr, "", nil)() == nil
			}, patience, 10*time.Millisecond)
		}
		ask()
	}
	tried := int64(0)
	for _, f := range floods {
		tried += f.tried.Load()
	}
	t.Logf("nodes: connections tried %d, held at most %d at one; probes answered %d/%d; honest answered %d/%d; "+
		"resident memory +%d MB; restarts %d, all came back",
		tried, held, probes, asked, honest, asked, grown>>20, nodes)
	require.Equal(t, asked, probes)
	require.Equal(t, asked, honest)
	require.Less(t, grown, maxFloodBytes)
}

// raftAddr returns the address of a node's inter-node port.
func (m *machines) raftAddr(i int) string {
	for _, arg := range m.args[i] {
		if addr, ok := strings.CutPrefix(arg, "--raft-addr="); ok {
			return addr
		}
	}
	m.t.Fatal("a server that runs alone has no inter-node port")
	return ""
}
