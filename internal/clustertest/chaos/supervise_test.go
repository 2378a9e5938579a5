package chaos

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheReasonOfAnExit(t *testing.T) {
	const (
		stuck    = `level=ERROR msg="this node cannot go on" error="stuck: a \"handover\" did not end" restart="yes, after the cause is removed"` + "\n"
		diverged = `level=ERROR msg="this node cannot go on" error="this node's state differs" restart="no: remove the node"` + "\n"
		again    = "chaos: start [serve]\n"
	)
	for name, c := range map[string]struct {
		log     string
		restart bool
	}{
		"a watchdog":                 {stuck, true},
		"a divergence":               {diverged, false},
		"a panic":                    {"panic: index out of range\n", false},
		"a panic after a restart":    {stuck + again + "panic: no\n", false},
		"a divergence, then stopped": {again + diverged + again + stuck, true},
	} {
		_, restart := whyEnded(c.log)
		require.Equal(t, c.restart, restart, name)
	}
	reason, _ := whyEnded(stuck)
	require.Contains(t, reason, "did not end")
}

// TestNobodyIsLateOnceARunIsOver checks that AwaitReady reports no error for a node that is still starting when the
// run ends. A process that ended is an error.
func TestNobodyIsLateOnceARunIsOver(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	starting := &Node{ID: "n1", Addr: "127.0.0.1:0", process: &Process{exited: make(chan struct{})}}
	require.NoError(t, starting.AwaitReady(over))
	ended := &Process{exited: make(chan struct{})}
	close(ended.exited)
	require.ErrorIs(t, (&Node{ID: "n2", Addr: "127.0.0.1:0", process: ended}).AwaitReady(t.Context()), ErrNotUp)
}
