package recovery

import (
	"strings"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
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
		known, left string
		again, fine bool
	}{
		{"a b c", "a b", false, true},
		{"a b c", "a d", false, false},
		{"a b d", "a d", false, true},
		{"a b d", "a c", false, false},
		{"", "a", false, false},
		{"a b c", "b a c", true, true},
		{"a b c", "a b", true, false},
		{"a b c", "a", true, true},
	} {
		require.Equal(t, c.fine, check(servers(c.left), servers(c.known), c.again) == nil, "%+v", c)
	}
}
