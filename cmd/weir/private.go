package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
)

// othersBits are the mode bits that give other users than the owner access to a file.
const othersBits fs.FileMode = 0o077

// stateNames are the files and directories that weir keeps in a data directory.
var stateNames = []string{
	"FORMAT", "FORMAT.new", "FLUSHED", "FLUSHED.new", "state", "NODE", "NODE.tmp", "table", "log",
	"shared-log", "log-part", "groups", "backup.tmp", "restore.tmp", "recover.json", "recover.json.done",
}

// ownerNames are the files by which weir recognises its data directory.
var ownerNames = []string{"FORMAT", "NODE"}

// keepPrivate sets the umask so that only this user can read the files that the process creates:
// the state holds keys, and the Raft log holds the requests of all clients. The umask covers
// Pebble and the Raft log as well, which choose the modes of their files themselves.
func keepPrivate() { setUmask(int(othersBits)) }

// narrow removes the permissions of group and others from weir's files in a data directory. Files
// that the operator copied there have modes of their own. narrow changes neither the directory
// itself nor files in it that are not weir's. It changes nothing in a directory that is not
// weir's: /var, for example, has a directory "log" too.
func narrow(log *slog.Logger, dir string) {
	entries, err := os.ReadDir(dir)
	if dir == "" || err != nil || !slices.ContainsFunc(entries, namesOwner) {
		return // it does not exist, or the store reports the problem
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
		log.Info("changed the mode of files in the data directory, so that only this user can read them", "dir", dir,
			"files", narrowed)
	}
}

func namesOwner(entry fs.DirEntry) bool {
	return entry.Type().IsRegular() && slices.Contains(ownerNames, entry.Name())
}

// narrowTree narrows a file, or a directory with all its content.
func narrowTree(root string) (narrowed int, err error) {
	if at, err := filepath.EvalSymlinks(root); err == nil {
		root = at // for example a log on a separate disk
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
