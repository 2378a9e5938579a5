package persistence

import (
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestStringsSurviveACrash checks that saved byte strings survive a crash byte for byte. A string that was replaced
// or deleted does not come back.
func TestStringsSurviveACrash(t *testing.T) {
	fs, src := vfs.NewCrashableMem(), &fakeSource{wall: noon}
	n := mustStart(t, nodeOptions(t, fs, src))
	do := func(n *Node, id engine.ScriptID, key string, values ...string) engine.Decision {
		call := &engine.Script{ID: id}
		for i, v := range values {
			call.Values[i] = []byte(v)
		}
		return decide(t, n, engine.Op{Code: engine.OpScript, Key: []byte(key), Script: call})
	}
	long := strings.Repeat("\x00 state \xff", 500)
	do(n, engine.TextSet, "long", long)
	do(n, engine.TextSet, "empty", "")
	do(n, engine.TextSet, "replaced", long)
	do(n, engine.TextSet, "counted", "bytes")
	do(n, engine.TextSet, "deleted", long)
	require.NoError(t, n.Save())
	do(n, engine.TextSet, "replaced", "short")
	do(n, engine.TextSet, "counted", "7")
	do(n, engine.TextTake, "deleted")
	require.NoError(t, n.Save())
	crash := fs.CrashClone(vfs.CrashCloneCfg{})
	require.NoError(t, n.Close())

	again := mustStart(t, nodeOptions(t, crash, src))
	require.EqualValues(t, 4, again.Len())
	for key, want := range map[string]string{"long": long, "empty": "", "replaced": "short"} {
		d := do(again, engine.CountGet, key)
		require.Equal(t, want, d.Value, key)
		require.EqualValues(t, 1, d.ScriptAnswer()[2], key)
	}
	d := do(again, engine.CountGet, "counted")
	require.EqualValues(t, 7, d.ScriptAnswer()[0])
	require.NoError(t, again.Close())
}
