package identity

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/failure"
)

var someone = Identity{NodeID: "c~1k2j3h", Durability: "fsync", Invited: true, Joined: true, JoinedAt: 42,
	ClusterID: "f00d", Version: version}

// identityIn returns a data directory with a log and the given identity file.
func identityIn(t *testing.T, file []byte) vfs.FS {
	fs := vfs.NewMem()
	require.NoError(t, fs.MkdirAll(fs.PathJoin("data", LogName), 0o750))
	if file != nil {
		require.NoError(t, persistence.WriteFile(fs, "data", FileName, string(file)))
	}
	return fs
}

// TestDamageLosesNoIdentity checks that a damaged identity file gives the same identity or an error. The node never
// forgets that it was invited, joined or diverged.
func TestDamageLosesNoIdentity(t *testing.T) {
	whole, err := someone.encode()
	require.NoError(t, err)
	tried, harmless := 0, 0
	judge := func(what string, file []byte) {
		fs := identityIn(t, file)
		tried++
		have, err := Claim(fs, "data", Identity{NodeID: someone.NodeID, Durability: "fsync"})
		if err == nil {
			require.Equal(t, someone, have, "%s: %s", what, file)
			harmless++
			return
		}
		require.True(t, errors.Is(err, failure.ErrDamaged) || errors.Is(err, failure.ErrNewer), "%s: %v", what, err)
		names, _ := fs.List("data")
		require.Len(t, names, min(len(names), 2), "nothing may be added to the directory")
		if file == nil {
			require.Equal(t, []string{LogName}, names)
			return
		}
		found, _, _ := readRaw(fs)
		require.Equal(t, file, found, "the file must not change")
	}
	for i := range whole {
		for pattern := 1; pattern < 256; pattern++ {
			bad := bytes.Clone(whole)
			bad[i] ^= byte(pattern)
			judge("a flipped byte", bad)
		}
		judge("cut short", whole[:i:i])
	}
	judge("zeros", make([]byte, len(whole)))
	judge("deleted", nil)
	t.Logf("identity %d damages: %d refused, %d harmless, 0 lost", tried, tried-harmless, harmless)
	require.Less(t, harmless, tried/2)
}

func readRaw(fs vfs.FS) ([]byte, bool, error) {
	f, err := fs.Open(fs.PathJoin("data", FileName))
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	b := new(bytes.Buffer)
	_, err = b.ReadFrom(f)
	return b.Bytes(), true, err
}

// TestAnIdentityWithoutAChecksum checks that an identity file without a checksum, or with data after it, is refused.
func TestAnIdentityWithoutAChecksum(t *testing.T) {
	bare, err := json.Marshal(someone)
	require.NoError(t, err)
	whole, err := someone.encode()
	require.NoError(t, err)
	for _, file := range [][]byte{bare, append(whole, '\n'), append(whole, whole...)} {
		_, err = Claim(identityIn(t, file), "data", Identity{NodeID: someone.NodeID})
		require.ErrorIs(t, err, failure.ErrDamaged)
		require.ErrorContains(t, err, "the checksum of NODE is wrong or missing")
	}
}

// TestALogWithoutAnIdentity checks that a member without its identity file does not start as a new node with the old
// log.
func TestALogWithoutAnIdentity(t *testing.T) {
	_, err := Claim(identityIn(t, nil), "data", Identity{NodeID: "a"})
	require.ErrorIs(t, err, failure.ErrDamaged)
	require.ErrorContains(t, err, "NODE file is missing")
	_, err = Claim(vfs.NewMem(), "data", Identity{NodeID: "a"})
	require.NoError(t, err)
}

// TestADirectoryThatIsNotMadeIsNoNodes checks that Claim returns the error of the file system if it cannot make the
// directory.
func TestADirectoryThatIsNotMadeIsNoNodes(t *testing.T) {
	broken := errors.New("broken")
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpenDir && op.Path != "data" { // the parent directory, whose entry must be durable
			return broken
		}
		return nil
	}))
	_, err := Claim(fs, "data", Identity{NodeID: "a"})
	require.ErrorIs(t, err, broken)
	_, ok, _ := Read(fs, "data")
	require.False(t, ok, "the directory must not belong to a node")
}

// TestARestoreThatLeftItsScratchIsWhole checks that a restore is complete once its identity is written. The identity
// comes last, so a crash after it loses nothing.
func TestARestoreThatLeftItsScratchIsWhole(t *testing.T) {
	fs := vfs.NewMem()
	require.NoError(t, persistence.MakeDirectory(fs, fs.PathJoin("data", "restore.tmp")))
	require.True(t, persistence.RestoreUnfinished(fs, "data"))
	_, err := Claim(fs, "data", Identity{NodeID: "a"})
	require.ErrorIs(t, err, failure.ErrRestoring)
	want := Identity{NodeID: "a", Durability: "fsync", Restored: true, Version: version}
	require.NoError(t, Write(fs, "data", want))
	have, err := Claim(fs, "data", Identity{NodeID: "a"})
	require.NoError(t, err)
	require.Equal(t, want, have)
}
