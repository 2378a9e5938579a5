package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

const saysReady, saysAccepting = `"msg":"ready"`, `"msg":"accepting clients"`

// TestANodeIsReadyWhenItHasALeader checks that a node of a cluster logs "ready" when it has a leader, not when it
// listens.
func TestANodeIsReadyWhenItHasALeader(t *testing.T) {
	t.Parallel()
	others := ",127.0.0.1:1,127.0.0.1:2"
	addr := freeport.Addr(t)
	lone := start(t, "--node-id=a", "--raft-addr="+addr, "--join="+addr+others)
	p := start(t, "--durability=fsync", "--raft-addr="+freeport.Addr(t))
	require.Eventually(t, func() bool { return strings.Contains(p.output(), saysReady) }, patience, 10*time.Millisecond)
	require.Less(t, strings.Index(p.output(), saysAccepting), strings.Index(p.output(), saysReady))
	p.stop()
	lone.stop()
	require.Contains(t, lone.output(), saysAccepting)
	require.NotContains(t, lone.output(), saysReady)

	alone := start(t)
	require.Contains(t, alone.output(), saysReady)
	require.NotContains(t, alone.output(), saysAccepting)
	alone.stop()
}
