package raftstore

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"
)

// mute is a log that cannot say where it ends, once after each time that err is set.
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

// keptNode is a node of a log of entries up to last, and an image of entry image; 0: none.
func keptNode(t *testing.T, image, last uint64) (*bareNode, *mute) {
	n := newBareNode(t)
	if n.keepImages(t); image > 0 {
		_, err := n.images.Seal(image, 1, state{Index: image}.encode(), nil)
		require.NoError(t, err)
	}
	store := &mute{InmemStore: raft.NewInmemStore()}
	n.logs = guard(store, n.fatal)
	for i := range last {
		require.NoError(t, n.logs.StoreLog(&raft.Log{Index: i + 1, Term: 1}))
	}
	n.identity.Joined, n.identity.JoinedAt = true, 1
	return n, store
}

// TestOnlyALogBehindTheImageIsEmptied: the entries after an image are in no other place.
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
			require.NoError(t, n.dropCoveredLog())
			left, err := n.logs.LastIndex()
			require.NoError(t, err)
			require.Equal(t, c.left, left)
		})
	}
}

// TestALogThatCannotBeReadIsLeftAlone, and is no reason to call the node damaged.
func TestALogThatCannotBeReadIsLeftAlone(t *testing.T) {
	unreadable := errors.New("unreadable")
	n, store := keptNode(t, 50, 10)
	store.err = unreadable
	require.ErrorIs(t, n.dropCoveredLog(), unreadable)
	last, err := n.logs.LastIndex()
	require.NoError(t, err)
	require.EqualValues(t, 10, last)

	n, store = keptNode(t, 0, 0)
	require.NoError(t, n.logs.SetUint64(keyCurrentTerm, 1))
	require.ErrorIs(t, n.checkKept(), ErrDamaged)
	store.err = unreadable
	err = n.checkKept()
	require.ErrorIs(t, err, unreadable)
	require.NotErrorIs(t, err, ErrDamaged)
}

// TestAMemberMustHaveKeptItsTermAndItsState, unless its durability promises neither or it
// is from a backup and has not been started since.
func TestAMemberMustHaveKeptItsTermAndItsState(t *testing.T) {
	restored := func(n *bareNode) {
		n.identity.Restored = true
		n.logs.SetUint64(keyCurrentTerm, 0)
	}
	for name, c := range map[string]struct {
		change      func(n *bareNode)
		image, last uint64
		says        string
	}{
		"a log":               {func(n *bareNode) {}, 0, 1, ""},
		"an image":            {func(n *bareNode) {}, 50, 0, ""},
		"nothing":             {func(n *bareNode) {}, 0, 0, "neither an image nor a log entry"},
		"no term":             {func(n *bareNode) { n.logs.SetUint64(keyCurrentTerm, 0) }, 50, 1, "no term"},
		"no member":           {func(n *bareNode) { n.identity.Joined = false }, 0, 0, ""},
		"durability os":       {func(n *bareNode) { n.options.Durability = OS }, 0, 0, ""},
		"a backup":            {restored, 50, 0, ""},
		"a backup with a log": {func(n *bareNode) { n.identity.Restored = true }, 50, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n, _ := keptNode(t, c.image, c.last)
			require.NoError(t, n.logs.SetUint64(keyCurrentTerm, 3))
			c.change(n)
			err := n.checkKept()
			if c.says != "" {
				require.ErrorIs(t, err, ErrDamaged)
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			require.Equal(t, name == "a backup", n.identity.Restored, "a node with a term is no backup")
		})
	}
}
