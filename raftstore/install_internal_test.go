package raftstore

import (
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/internal/failure"
	"github.com/weir-project/weir/raftstore/internal/fsm"
	"github.com/weir-project/weir/raftstore/internal/images"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
)

// TestAReplacedLogEndsTheNode checks that a node stops after an image was installed over a log with later entries,
// because the library needs a restart. Removing entries that an image covers, or a tail that another leader
// overwrote, is normal.
func TestAReplacedLogEndsTheNode(t *testing.T) {
	const image = 50
	for name, c := range map[string]struct {
		low, high uint64
		ends      bool
	}{
		"the whole log, which goes on behind the image": {10, 60, true},
		"up to the image":                  {10, 50, false},
		"a tail behind the image":          {51, 60, false},
		"a log that ends before the image": {10, 40, false},
	} {
		t.Run(name, func(t *testing.T) {
			var ended []error
			g := raftlog.Guard(raft.NewInmemStore(), func(err error) { ended = append(ended, err) })
			g.NewestImage = func() uint64 { return image }
			require.NoError(t, g.DeleteRange(c.low, c.high))
			if !c.ends {
				require.Empty(t, ended)
				return
			}
			require.Len(t, ended, 1)
			require.ErrorIs(t, ended[0], failure.ErrStuck)
			require.Contains(t, failure.RestartAdvice(ended[0], false), "yes")
		})
	}
}

// TestWhatOverrulesARecoveryIsNotLate checks that an image whose entries the node already has counts as late. Only an
// image that overrules the node's own recovery is installed anyway.
func TestWhatOverrulesARecoveryIsNotLate(t *testing.T) {
	for name, c := range map[string]struct {
		meta  string
		index uint64 // of the arriving image; the newest local image is of entry 50
		holds bool
		late  bool
	}{
		"entries it lacks":              {`{}`, 60, false, false},
		"entries it has":                {`{}`, 40, true, true},
		"a recovery of its own":         {`{"Recovered":true}`, 40, true, false},
		"as new as the recovery":        {`{"Recovered":true}`, 50, true, true},
		"an image that cannot be read":  {`{"Recovered":true,"Version":"odd"}`, 40, true, true},
		"a recovery, and entries later": {`{"Recovered":true}`, 60, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			n := newBareNode(t)
			n.keepImages(t)
			_, err := n.images.Seal(50, 1, fsm.State{Index: 50}.Encode(), []byte(c.meta))
			require.NoError(t, err)
			s := images.Store{Images: n.images, Has: func(uint64, uint64) bool { return c.holds }}
			require.Equal(t, c.late, s.Late(c.index, 1))
		})
	}
}
