package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// othersBits are the mode bits that let anybody but the owner at a file.
const othersBits fs.FileMode = 0o077

// stateNames are what weir keeps in a data directory.
var stateNames = []string{
	"FORMAT", "FORMAT.new", "FLUSHED", "FLUSHED.new", "state", "NODE", "NODE.tmp", "table", "log",
	"backup.tmp", "restore.tmp", "recover.json", "recover.json.done",
}

// ownerNames are the files by which weir knows a data directory for its own.
var ownerNames = []string{"FORMAT", "NODE"}

// keepPrivate makes the files that this process creates its user's alone: the state holds keys,
// and the log what every client asked. The libraries that write it have modes of their own, so
// the process's mask decides.
func keepPrivate() { syscall.Umask(int(othersBits)) }

// narrow takes from group and others what they may do with the files of a data directory, which
// an earlier weir left to the mask of its user. The directory itself is left as the operator
// made it, and so is everything in it that is not weir's. Nothing is touched in a directory that
// holds something else: it may have a log of its own, as /var has.
func narrow(log *slog.Logger, dir string) {
	entries, err := os.ReadDir(dir)
	if dir == "" || err != nil || !slices.ContainsFunc(entries, namesOwner) {
		return // there is none, or the store tells what is wrong with it
	}
	narrowed := 0
	for _, entry := range entries {
		if !slices.Contains(stateNames, entry.Name()) {
			continue
		}
		n, e := narrowTree(filepath.Join(dir, entry.Name()))
		narrowed, err = narrowed+n, errors.Join(err, e)
	}
	if err != nil {
		log.Warn("other users can read files of the data directory; let their owner run chmod -R go= on it",
			"dir", dir, "error", err)
	}
	if narrowed > 0 {
		log.Info("files of the data directory are now for this user only", "dir", dir, "files", narrowed)
	}
}

func namesOwner(entry fs.DirEntry) bool {
	return entry.Type().IsRegular() && slices.Contains(ownerNames, entry.Name())
}

// narrowTree narrows a file, or a directory with all in it.
func narrowTree(root string) (narrowed int, err error) {
	if at, err := filepath.EvalSymlinks(root); err == nil {
		root = at // a log, say, on a disk of its own
	}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Mode()&othersBits == 0 {
			return err
		}
		narrowed++
		return os.Chmod(path, info.Mode().Perm()&^othersBits)
	})
	return narrowed, err
}
