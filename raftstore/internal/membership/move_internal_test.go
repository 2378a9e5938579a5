package membership

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/fsm"
)

// TestWhereANodeIs checks that a committed configuration decides a node's address, because an uncommitted change may
// be undone.
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
