package raftstore

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	wal "github.com/hashicorp/raft-wal"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/host"
)

func TestFatalErrorsSayWhetherToRestart(t *testing.T) {
	h := &host.Group{Log: slog.New(slog.DiscardHandler)}
	require.NotNil(t, h.Stopper(nil))
	corrupt := fmt.Errorf("%w: %w", failure.ErrLogFailed, wal.ErrCorrupt)
	require.Contains(t, failure.RestartAdvice(failure.ErrDiverged, false), "no:")
	require.Contains(t, failure.RestartAdvice(failure.ErrLogFailed, false), "yes")
	require.Contains(t, failure.RestartAdvice(corrupt, false), "no:", "a restart would only fail again")
	for err, want := range map[error]string{
		ErrRemoved:   "no: to have it join again",
		ErrLostState: "no: remove the node of this id",
		ErrRemovedID: "yes: it joins as a new node",
		ErrDisputed:  "yes, when the other nodes are up again",
		ErrNewer:     "no: run the newer version",
		ErrStuck:     "yes, after the cause is removed",
	} {
		require.Contains(t, failure.RestartAdvice(fmt.Errorf("node: %w", err), false), want)
	}
}

// TestNoAdviceDeletesAnything checks that no advice tells an operator to delete a directory, which may be the only
// copy of the state.
func TestNoAdviceDeletesAnything(t *testing.T) {
	for _, alone := range []bool{true, false} {
		for _, err := range []error{failure.ErrDiverged, failure.ErrRemoved, failure.ErrLostState, failure.ErrRemovedID,
			failure.ErrNewer, failure.ErrLogFailed, wal.ErrCorrupt, failure.ErrStuck, failure.ErrDisputed,
			persistence.ErrDamagedLive} {
			advice := failure.RestartAdvice(err, alone)
			for _, word := range []string{"empty", "delete", "erase", "wipe"} {
				require.NotContains(t, advice, word, "%v", err)
			}
		}
	}
	require.True(t, strings.HasPrefix(failure.RestartAdvice(persistence.ErrDamagedLive, false), "no: "),
		"damage must not be advised to restart")
	alone := failure.RestartAdvice(wal.ErrCorrupt, true)
	require.Contains(t, alone, "backup")
	require.Contains(t, alone, "keep this data directory")
	require.NotContains(t, alone, "remove")
	others := failure.RestartAdvice(wal.ErrCorrupt, false)
	require.Less(t, strings.Index(others, "majority serves"), strings.Index(others, "remove this node"),
		"the advice must name the check before the removal")

	h := &host.Group{Options: host.Options{Expect: 1}, Peers: &host.Peers{}}
	require.True(t, h.Alone())
	h.Peers.Members.Store(&[]limiter.Member{{ID: "a"}, {ID: "b"}})
	require.False(t, h.Alone(), "a cluster that has grown is not alone")
	h = &host.Group{Options: host.Options{Expect: 3, Join: []string{"a", "b", "c"}}, Peers: &host.Peers{}}
	require.False(t, h.Alone())
}
