package recovery

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// TestServersOfAGroup checks which servers of a group go on after the loss of nodes, and whether they need a recovery.
func TestServersOfAGroup(t *testing.T) {
	voter := func(id, at string) raft.Server {
		return raft.Server{ID: raft.ServerID(id), Address: raft.ServerAddress(at)}
	}
	learner := func(id, at string) raft.Server {
		s := voter(id, at)
		s.Suffrage = raft.Nonvoter
		return s
	}
	left := []survivor{{"a", "a:1"}, {"b~1", "b:1"}, {"c", "c:2"}}
	for name, c := range map[string]struct {
		group       int
		known, want []raft.Server
		goesOn      bool
	}{
		"one of three": {1, []raft.Server{voter("a", "a:1"), voter("x", "x:1"), voter("y", "y:1")},
			[]raft.Server{voter("a", "a:1")}, false},
		"two of three, one under another id": {1,
			[]raft.Server{voter("a", "a:1"), voter("b~2", "b:1"), voter("y", "y:1")},
			[]raft.Server{voter("a", "a:1"), voter("b~2", "b:1")}, true},
		"two of three, one at another address": {1,
			[]raft.Server{voter("a", "a:1"), voter("c", "c:1"), voter("y", "y:1")},
			[]raft.Server{voter("a", "a:1"), voter("c", "c:2")}, false},
		"two of four": {1, []raft.Server{voter("a", "a:1"), voter("b", "b:1"), voter("x", "x:1"), voter("y", "y:1")},
			[]raft.Server{voter("a", "a:1"), voter("b", "b:1")}, false},
		"one, and one that does not vote yet": {1,
			[]raft.Server{voter("a", "a:1"), learner("b", "b:1"), voter("x", "x:1"), voter("y", "y:1")},
			[]raft.Server{voter("a", "a:1"), learner("b", "b:1")}, false},
		"none but one that does not vote yet": {1, []raft.Server{learner("a", "a:1"), voter("x", "x:1")},
			[]raft.Server{voter("a", "a:1")}, false},
		"none": {1, []raft.Server{voter("x", "x:1")}, nil, false},
		"the first group": {0, []raft.Server{voter("x", "x:1"), learner("a", "a:1")},
			[]raft.Server{voter("a", "a:1"), voter("b~1", "b:1"), voter("c", "c:2")}, false},
	} {
		r := &Recovery{Group: c.group}
		got := r.servers(left, c.known)
		require.Equal(t, c.want, got, name)
		require.Equal(t, c.goesOn, hasMajority(got, c.known), name)
	}
}
