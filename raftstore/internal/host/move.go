package host

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/logging"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/sharedlog"
	"github.com/weir-project/weir/raftstore/wallog"
)

const (
	// movedSuffix is the end of the name of a log that has moved.
	movedSuffix = ".moved"
	// moveBytes bounds the entries that move with one sync.
	moveBytes = 4 << 20
)

// openOwnLog opens the log that the directory of the group has, or returns nil if it has none. A log that does not open
// leaves the directory as it is.
func (g *Group) openOwnLog() (*wallog.Log, error) {
	on, path := g.Options.FS, g.Options.FS.PathJoin(g.Options.DataDir, identity.LogName)
	if err := on.RemoveAll(path + movedSuffix); err != nil {
		return nil, err
	}
	if _, err := on.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return openWAL(&g.Options, identity.LogName, logging.New(g.Log, g.Peers.Expects))
}

// openNewPart opens a new part of the shared log. It leaves the part of an interrupted move behind.
func (g *Group) openNewPart() (*sharedlog.Part, error) {
	err := g.Options.FS.Remove(g.Options.FS.PathJoin(g.Options.DataDir, identity.PartName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return g.openPart()
}

// moveLog copies the group's own log into a new part of the shared log, and removes it when the copy is on disk. Before
// the removal it writes the identity in the present format: an older weir must not take the group for one that has lost
// its log. Until then the older weir can still use the directory.
func (g *Group) moveLog(from *wallog.Log) (*sharedlog.Part, error) {
	on, dir := g.Options.FS, g.Options.DataDir
	to, err := g.openNewPart()
	if err == nil {
		err = copyLog(to, from)
	}
	if err = errors.Join(err, from.Close()); err == nil {
		err = syncFiles(on, on.PathJoin(dir, identity.SharedLogName))
	}
	if err == nil {
		err = identity.Write(on, dir, g.Identity.Identity)
	}
	if err != nil {
		return nil, fmt.Errorf("the log could not be moved to %s, and stays where it is: %w", identity.SharedLogName,
			err)
	}
	path := on.PathJoin(dir, identity.LogName)
	if err := on.Rename(path, path+movedSuffix); err != nil {
		return nil, err
	}
	if err := persistence.SyncDirectory(on, dir); err != nil {
		return nil, err
	}
	return to, on.RemoveAll(path + movedSuffix)
}

// syncFiles syncs a directory and its files. The log itself does not with every durability.
func syncFiles(on vfs.FS, dir string) error {
	names, err := on.List(dir)
	for _, name := range names {
		f, errOpen := on.Open(on.PathJoin(dir, name))
		if err = errors.Join(err, errOpen); errOpen == nil {
			err = errors.Join(err, f.Sync(), f.Close())
		}
	}
	return errors.Join(err, persistence.SyncDirectory(on, dir))
}

// copyLog copies the term, the vote and the entries of a log.
func copyLog(to, from raftlog.Store) error {
	for _, key := range [][]byte{raftlog.KeyTerm, raftlog.KeyVoteTerm} {
		n, err := from.GetUint64(key)
		if err == nil {
			err = to.SetUint64(key, n)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	candidate, err := from.Get(raftlog.KeyVoteCandidate)
	if err == nil && len(candidate) > 0 {
		err = to.Set(raftlog.KeyVoteCandidate, candidate)
	}
	next, err1 := from.FirstIndex()
	last, err2 := from.LastIndex()
	if err := errors.Join(err, err1, err2); err != nil || last == 0 {
		return err
	}
	for next <= last {
		var batch []*raft.Log
		for bytes := 0; next <= last && bytes < moveBytes; next++ {
			entry := &raft.Log{}
			if err := from.GetLog(next, entry); err != nil {
				return err
			}
			batch, bytes = append(batch, entry), bytes+len(entry.Data)
		}
		if err := to.StoreLogs(batch); err != nil {
			return err
		}
	}
	return nil
}
