package raftstore

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// mute is a log whose last index fails to read once after err is set.
type mute struct {
	*raft.InmemStore
	err error
}

func (m *mute) LastIndex() (uint64, error) {
	if err := m.err; err != nil {
		m.err = nil
		return 0, err
	}
	return m.InmemStore.LastIndex()
}

// keptNode returns a node with a log up to entry last, and an image of entry image unless that is 0.
func keptNode(t *testing.T, image, last uint64) (*bareNode, *mute) {
	n := newBareNode(t)
	if n.keepImages(t); image > 0 {
		_, err := n.images.Seal(image, 1, fsm.State{Index: image}.Encode(), nil)
		require.NoError(t, err)
	}
	store := &mute{InmemStore: raft.NewInmemStore()}
	n.logs = raftlog.Guard(store, n.own.Fatal)
	for i := range last {
		require.NoError(t, n.logs.StoreLog(&raft.Log{Index: i + 1, Term: 1}))
	}
	n.own.Identity.Joined, n.own.Identity.JoinedAt = true, 1
	return n, store
}

// TestOnlyALogBehindTheImageIsEmptied checks that a log is emptied only if it ends before the image. A longer log has
// entries that the image lacks.
func TestOnlyALogBehindTheImageIsEmptied(t *testing.T) {
	for name, c := range map[string]struct{ image, last, left uint64 }{
		"no image":                    {0, 40, 40},
		"it ends before the image":    {50, 49, 0},
		"it ends with the image":      {50, 50, 50},
		"it goes on behind the image": {50, 51, 51},
		"it is empty":                 {50, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := keptNode(t, c.image, c.last)
			require.NoError(t, n.recovery().DropCompactedLog())
			left, err := n.logs.LastIndex()
			require.NoError(t, err)
			require.Equal(t, c.left, left)
		})
	}
}

// TestALogThatCannotBeReadIsLeftAlone checks that a read error neither empties the log nor marks the node as damaged.
func TestALogThatCannotBeReadIsLeftAlone(t *testing.T) {
	unreadable := errors.New("unreadable")
	n, store := keptNode(t, 50, 10)
	store.err = unreadable
	require.ErrorIs(t, n.recovery().DropCompactedLog(), unreadable)
	last, err := n.logs.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, 10, last)

	n, store = keptNode(t, 0, 0)
	require.NoError(t, n.logs.SetUint64(raftlog.KeyTerm, 1))
	require.ErrorIs(t, n.recovery().CheckKept(), failure.ErrDamaged)
	store.err = unreadable
	err = n.recovery().CheckKept()
	require.ErrorIs(t, err, unreadable)
	require.NotErrorIs(t, err, failure.ErrDamaged)
}

// TestAMemberMustHaveKeptItsTermAndItsState checks that a member without its term or its state is refused. Weaker
// durability and a backup that was never started are exceptions.
func TestAMemberMustHaveKeptItsTermAndItsState(t *testing.T) {
	restored := func(n *bareNode) {
		n.own.Identity.Restored = true
		n.logs.SetUint64(raftlog.KeyTerm, 0)
	}
	for name, c := range map[string]struct {
		change      func(n *bareNode)
		image, last uint64
		says        string
	}{
		"a log":               {func(n *bareNode) {}, 0, 1, ""},
		"an image":            {func(n *bareNode) {}, 50, 0, ""},
		"nothing":             {func(n *bareNode) {}, 0, 0, "neither an image nor a log entry"},
		"no term":             {func(n *bareNode) { n.logs.SetUint64(raftlog.KeyTerm, 0) }, 50, 1, "no term"},
		"no member":           {func(n *bareNode) { n.own.Identity.Joined = false }, 0, 0, ""},
		"durability os":       {func(n *bareNode) { n.own.Options.Durability = identity.OS }, 0, 0, ""},
		"a backup":            {restored, 50, 0, ""},
		"a backup with a log": {func(n *bareNode) { n.own.Identity.Restored = true }, 50, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := keptNode(t, c.image, c.last)
			require.NoError(t, n.logs.SetUint64(raftlog.KeyTerm, 3))
			c.change(n)
			err := n.recovery().CheckKept()
			if c.says != "" {
				require.ErrorIs(t, err, failure.ErrDamaged)
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, name == "a backup", n.own.Identity.Restored,
				"a node with a term must not count as a backup")
		})
	}
}
