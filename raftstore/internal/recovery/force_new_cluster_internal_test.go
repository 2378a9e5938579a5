package recovery

import (
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/internal/fsm"
)

// TestServersOfARecovery checks which servers a recovery accepts, the first time and when it is repeated.
func TestServersOfARecovery(t *testing.T) {
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
		h := &recoveredMachine{FSM: fsm.New(engine.Options{}, 1), log: &endedLog{configured: servers(c.log)},
			servers: servers(c.left), again: c.again}
		h.Committed.Store(&fsm.Configuration{Servers: servers(c.before)})
		require.Equal(t, c.fine, h.check() == nil, "%+v", c)
	}
}
