package raftstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

func TestGone(t *testing.T) {
	before := []string{"a"}
	now := removedIDs(before, []string{"a", "b", "c", "d~1"}, []string{"c"})
	require.Equal(t, []string{"a", "b"}, now)
	require.Equal(t, []string{"a"}, before)
	for i := range maxRemovedIDs {
		now = removedIDs(now, []string{fmt.Sprint(i)}, nil)
	}
	require.Len(t, now, maxRemovedIDs)
	require.NotContains(t, now, "b", "the oldest goes first")
	require.Contains(t, now, fmt.Sprint(maxRemovedIDs-1))
}

// TestWhereANodeIs: what only this node has heard of a change may be undone.
func TestWhereANodeIs(t *testing.T) {
	before := []raft.Server{{ID: "a", Address: "old"}, {ID: "b", Address: "b"}}
	after := []raft.Server{{ID: "a", Address: "new"}}
	for want, is := range map[string]string{
		"new": whereIs("a", nil, after),
		"old": whereIs("a", &configuration{servers: before}, after),
		"b":   whereIs("b", &configuration{servers: after}, before),
		"":    whereIs("c", &configuration{servers: before}, after),
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
		h := &recoveredMachine{machine: newMachine(engine.Options{}), log: &endedLog{configured: servers(c.log)}, servers: servers(c.left), again: c.again}
		h.committed.Store(&configuration{servers: servers(c.before)})
		require.Equal(t, c.fine, h.check() == nil, "%+v", c)
	}
}
