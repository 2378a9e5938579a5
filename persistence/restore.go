package persistence

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/engine/hashslot"
)

// restoreName is the directory, within the target directory, in which a restore prepares all files. weir does not start
// in a directory that contains it.
const restoreName = "restore.tmp"

// movingName is the file in restoreName that lists what the restore moves into the target directory. The next restore
// deletes these files if this one was killed among the moves.
const movingName = "moving"

// Restore turns o.Dir into the data directory of a server that runs alone, from a backup of any node. o.Dir must be
// empty or absent. The clock continues from the backup's clock, as after a restart. Errors are ErrNotEmpty,
// ErrNoBackup, ErrBackupNewer and disk errors. After an error the directory is empty or absent again, so the caller can
// try again. A disk failure can also end the process, through o.OnFatal.
func Restore(o StoreOptions, from io.Reader) (Contents, error) {
	return RestoreTo(o, from, formatName, func(into string, b *Unpacked) error {
		to := o
		to.Dir = into
		store, err := OpenStore(to)
		if err != nil {
			return err
		}
		return errors.Join(store.fill(b), store.Close())
	})
}

// fill stores the entries of a backup in a new store.
func (s *Store) fill(b *Unpacked) error {
	at := b.Within(hashslot.All).At
	if err := s.Begin(at); err != nil {
		return err
	}
	err := b.Entries(hashslot.All, func(chunk []engine.Change) error { return s.commit(chunk, at, pebble.NoSync) })
	if err != nil {
		return err
	}
	return s.commit(nil, at, pebble.Sync)
}

// RestoreTo restores a backup to o.Dir. build creates a data directory from b at the path into, and RestoreTo moves its
// files to o.Dir. It moves the file named last after all others. Without this file no node starts from the directory.
// Errors are those of Restore and of build.
func RestoreTo(o StoreOptions, from io.Reader, last string, build func(into string, b *Unpacked) error) (Contents,
	error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	dir := directory{o.FS, o.Dir}
	made, err := dir.claimEmpty(last)
	if err != nil {
		return Contents{}, fmt.Errorf("data directory %q: %w", o.Dir, refusal(err))
	}
	contents, err := unpack(o, from, build)
	if err == nil {
		err = dir.moveIntoPlace(last)
	}
	err = errors.Join(err, o.FS.RemoveAll(dir.file(restoreName)))
	if err != nil && made {
		err = errors.Join(err, o.FS.Remove(o.Dir))
	}
	return contents, err
}

// claimEmpty creates the directory, or checks that it is empty, and reports whether it created it. It removes the files
// of an interrupted restore, and makes a new directory for this one.
func (d directory) claimEmpty(last string) (made bool, err error) {
	names, err := d.fs.List(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, d.make(d.file(restoreName))
	}
	if err != nil {
		return false, err
	}
	moved := d.movedBefore(names, last)
	for _, name := range names {
		if name != restoreName && name != "lost+found" && !slices.Contains(moved, name) {
			return false, fmt.Errorf("%w (found %q)", ErrNotEmpty, name)
		}
	}
	for _, name := range append(moved, restoreName) { // the list of the moved files goes last
		if err := removeAll(d.fs, d.file(name)); err != nil {
			return false, err
		}
	}
	return false, d.make(d.file(restoreName))
}

// movedBefore lists the files that an interrupted restore may have moved into the directory, which has the given names.
// The list is empty if the file named last is there, because a node can start from the directory then.
func (d directory) movedBefore(names []string, last string) []string {
	if slices.Contains(names, last) {
		return nil
	}
	text, err := d.scratch().read(movingName)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(strings.Fields(text), func(name string) bool { return !slices.Contains(names, name) })
}

func (d directory) scratch() directory { return directory{d.fs, d.file(restoreName)} }

// RestoreUnfinished reports whether a restore to the directory was interrupted or is running.
func RestoreUnfinished(on vfs.FS, dir string) bool {
	_, err := on.Stat(on.PathJoin(dir, restoreName))
	return err == nil
}

// moveIntoPlace moves the prepared files into the directory, and the file named last after all others. If it fails, it
// removes the files that it moved, so that the restore can be tried again. It removes the file named last first,
// because a node starts from a directory that has it.
func (d directory) moveIntoPlace(last string) (err error) {
	var moved []string
	defer func() {
		if err == nil {
			return
		}
		for _, name := range slices.Backward(moved) {
			err = errors.Join(err, removeAll(d.fs, d.file(name)))
		}
	}()
	ready := directory{d.fs, d.fs.PathJoin(d.path, restoreName, "ready")}
	names, err := d.fs.List(ready.path)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == last })
	if err := d.scratch().write(movingName+".new", movingName, strings.Join(names, "\n")); err != nil {
		return err
	}
	for _, name := range append(names, last) {
		if name == last { // after a crash, this file must not be in place without the others
			if err := d.sync(); err != nil {
				return err
			}
		}
		if err := d.fs.Rename(ready.file(name), d.file(name)); err != nil {
			return err
		}
		moved = append(moved, name)
	}
	return d.sync()
}
