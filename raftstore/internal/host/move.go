package host

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/internal/identity"
	"github.com/weir-project/weir/raftstore/internal/logging"
	"github.com/weir-project/weir/raftstore/internal/raftlog"
	"github.com/weir-project/weir/raftstore/sharedlog"
)

const (
	// movedSuffix is the end of the name of a log that has moved.
	movedSuffix = ".moved"
	// moveBytes bounds the entries that move with one sync.
	moveBytes = 4 << 20
)

// beginMove reports whether the directory of the group has a log of its own. If so, it gives the group a new part of
// the shared log, because an earlier move may have been interrupted. It also writes the identity in the present format:
// an older weir must not take the group for one that has lost its log.
func (g *Group) beginMove() (bool, error) {
	on, dir := g.Options.FS, g.Options.DataDir
	if err := on.RemoveAll(on.PathJoin(dir, identity.LogName+movedSuffix)); err != nil {
		return false, err
	}
	if _, err := on.Stat(on.PathJoin(dir, identity.LogName)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	if err := on.Remove(on.PathJoin(dir, identity.PartName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, identity.Write(on, dir, g.Identity.Identity)
}

// moveLog moves the group's own log into a new part.
func (g *Group) moveLog(to *sharedlog.Part) error {
	on, dir := g.Options.FS, g.Options.DataDir
	from, err := openWAL(&g.Options, identity.LogName, logging.New(g.Log, g.Peers.Expects))
	if err != nil {
		return err
	}
	if err := errors.Join(copyLog(to, from), from.Close()); err != nil {
		return fmt.Errorf("the log could not be moved to %s: %w", identity.SharedLogName, err)
	}
	path := on.PathJoin(dir, identity.LogName)
	if err := on.Rename(path, path+movedSuffix); err != nil {
		return err
	}
	if err := identity.SyncDirectory(on, dir); err != nil {
		return err
	}
	return on.RemoveAll(path + movedSuffix)
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
