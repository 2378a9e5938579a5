package wallog_test

import (
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/wallog"
)

// TestTheLogOpensAgainWhereverItEnds: ended at any entry, segments' last ones
// included, the log takes the next entry when it is opened again.
func TestTheLogOpensAgainWhereverItEnds(t *testing.T) {
	for name, sync := range map[string]bool{"written through": true, "left to the system": false} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "not", "made")
			data := make([]byte, 1<<20)
			for i := uint64(1); i <= 40; i++ {
				w, err := wallog.Open(dir, sync, hclog.NewNullLogger())
				require.NoError(t, err)
				require.NoError(t, w.StoreLogs([]*raft.Log{{Index: i, Term: 1, Data: data}}), "entry %d", i)
				require.NoError(t, w.SetUint64([]byte("term"), i))
				require.NoError(t, w.Close())
			}
			w, err := wallog.Open(dir, sync, hclog.NewNullLogger())
			require.NoError(t, err)
			defer w.Close()
			for i := uint64(1); i <= 40; i++ {
				var l raft.Log
				require.NoError(t, w.GetLog(i, &l))
				require.Len(t, l.Data, len(data))
			}
			term, err := w.GetUint64([]byte("term"))
			require.NoError(t, err)
			require.EqualValues(t, 40, term)
		})
	}
}
