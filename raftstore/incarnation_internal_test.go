package raftstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/identity"
)

func TestGone(t *testing.T) {
	before := []string{"a"}
	now := identity.RemovedIDs(before, []string{"a", "b", "c", "d~1"}, []string{"c"})
	require.Equal(t, []string{"a", "b"}, now)
	require.Equal(t, []string{"a"}, before)
	for i := range identity.MaxRemovedIDs {
		now = identity.RemovedIDs(now, []string{fmt.Sprint(i)}, nil)
	}
	require.Len(t, now, identity.MaxRemovedIDs)
	require.NotContains(t, now, "b", "the oldest goes first")
	require.Contains(t, now, fmt.Sprint(identity.MaxRemovedIDs-1))
}

// TestWhereANodeIs: what only this node has heard of a change may be undone.
func TestWhereANodeIs(t *testing.T) {
	before := []raft.Server{{ID: "a", Address: "old"}, {ID: "b", Address: "b"}}
	after := []raft.Server{{ID: "a", Address: "new"}}
	for want, is := range map[string]string{
		"new": whereIs("a", nil, after),
		"old": whereIs("a", &fsm.Configuration{Servers: before}, after),
		"b":   whereIs("b", &fsm.Configuration{Servers: after}, before),
		"":    whereIs("c", &fsm.Configuration{Servers: before}, after),
	} {
		require.Equal(t, want, is)
	}
}

// TestWhoMayInherit a cluster, once and again.
func TestWhoMayInherit(t *testing.T) {
	servers := func(ids string) (all []raft.Server) {
		for id := range strings.FieldsSeq(ids) {
			all = append(all, raft.Server{ID: raft.ServerID(id)})
		}
		return all
	}
	for _, c := range []struct {
		before, log, left string
		again, fine       bool
	}{
		{"a b c", "", "a b", false, true},
		{"a b c", "", "a d", false, false},
		{"a b c", "a b d", "a d", false, true},
		{"a b c", "a b d", "a c", false, false},
		{"", "", "a", false, false},
		{"a b c", "", "b a c", true, true},
		{"a b c", "", "a b", true, false},
		{"a b c", "", "a", true, true},
	} {
		h := &recoveredMachine{FSM: fsm.New(engine.Options{}), log: &endedLog{configured: servers(c.log)}, servers: servers(c.left), again: c.again}
		h.Committed.Store(&fsm.Configuration{Servers: servers(c.before)})
		require.Equal(t, c.fine, h.check() == nil, "%+v", c)
	}
}
