package persistence

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// formatVersion is the version of the data directory this program writes. It
// covers the layout, the encoding of the clock record and that of the entries.
// Format 2 keeps entries as a journal of their changes; see legacy.go for format 1.
// Format 3 may keep only what a log gained. Format 4 does not repeat what a change shares
// with the one before; see block. Format 5 says in each clock record where the journal
// begins, and keeps marks in slots; see mark.
const formatVersion = 5

// markedFormat is the first format whose directories always have a FLUSHED file.
const markedFormat = 5

// The names in a data directory. freshName marks a first start that has not
// finished: it becomes formatName once the store exists, so a crash in between
// is told apart from a store that lost its files.
const (
	formatName  = "FORMAT"
	freshName   = "FORMAT.new"
	flushedName = "FLUSHED"
	stateName   = "state"
)

// NodeName is the file that marks the data directory of a node of a cluster.
const NodeName = "NODE"

const maxSmallFile = 4096 // bytes read of FORMAT and FLUSHED: each is one line

// directory is a data directory on some file system.
type directory struct {
	fs   vfs.FS
	path string
}

func (d directory) file(name string) string { return d.fs.PathJoin(d.path, name) }

// inspect looks at the directory without changing it: true means that no state
// was ever saved here and a new store may be made.
func (d directory) inspect() (fresh bool, err error) {
	names, err := d.fs.List(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	if slices.Contains(names, formatName) {
		return false, d.checkFormat(names)
	}
	if slices.Contains(names, NodeName) {
		return false, ErrClustered
	}
	if slices.Contains(names, flushedName) && !slices.Contains(names, freshName) {
		return false, fmt.Errorf("%w (its %s file is missing)", ErrDamaged, formatName)
	}
	begun := slices.Contains(names, freshName)
	for _, name := range names {
		ours := begun && slices.Contains([]string{stateName, freshName, flushedName, flushedName + ".new"}, name)
		if !ours && name != "lost+found" { // every new ext4 volume has one
			return false, fmt.Errorf("%w (found %q and no %s file)", ErrForeign, name, formatName)
		}
	}
	return true, nil
}

// checkFormat judges a directory that has been used before.
func (d directory) checkFormat(names []string) error {
	_, err := d.format()
	if err == nil && !slices.Contains(names, stateName) {
		return fmt.Errorf("%w (%s is missing)", ErrDamaged, stateName)
	}
	return err
}

// format reads which format the directory has, one that this program knows.
func (d directory) format() (version int, err error) {
	text, err := d.read(formatName)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(text, "weir data format %d\n", &version); err != nil || text != formatText(version) {
		return 0, fmt.Errorf("%w (its %s file says %q)", ErrDamaged, formatName, text)
	}
	if version > formatVersion {
		return 0, fmt.Errorf("%w (format %d, this weir knows %d)", ErrNewer, version, formatVersion)
	}
	if version < 1 {
		return 0, fmt.Errorf("%w (format %d never existed)", ErrDamaged, version)
	}
	return version, nil
}

func formatText(version int) string { return fmt.Sprintf("weir data format %d\n", version) }

// begin makes the directory and notes that a first start is under way.
func (d directory) begin() error {
	if err := d.make(d.path); err != nil {
		return err
	}
	return d.write(freshName, freshName, formatText(formatVersion))
}

// make makes a directory and its parents, each on disk in the one above it: a
// directory whose parent was never synced is gone after a power failure, with
// everything in it.
func (d directory) make(path string) error {
	parent := d.fs.PathDir(path)
	if _, err := d.fs.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if parent != path {
		if err := d.make(parent); err != nil {
			return err
		}
	}
	if err := d.fs.MkdirAll(path, 0o700); err != nil {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) { // a place or a name that takes no directory
			return fmt.Errorf("%w (%v)", ErrNotWritable, err)
		}
		return err
	}
	return directory{fs: d.fs, path: parent}.sync()
}

// MakeDirectory makes a directory, and those above it, so that a loss of power does
// not take it away again with what is written to it.
func MakeDirectory(on vfs.FS, path string) error { return directory{fs: on}.make(path) }

// finish notes that the store exists and has its first record.
func (d directory) finish() error {
	if err := d.fs.Rename(d.file(freshName), d.file(formatName)); err != nil {
		return err
	}
	return d.sync()
}

// upgrade makes an older directory one of this format: before anything is written that
// only this format knows.
func (d directory) upgrade() error {
	text, err := d.read(formatName)
	if err != nil || text == formatText(formatVersion) {
		return err
	}
	return d.write(freshName, formatName, formatText(formatVersion))
}

func (d directory) read(name string) (string, error) {
	f, err := d.fs.Open(d.file(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSmallFile))
	return strings.ToValidUTF8(string(b), "\uFFFD"), err
}

// write replaces file name by way of file temp; after a crash it holds the old
// text or the new, never a part.
func (d directory) write(temp, name, text string) error {
	f, err := d.fs.Create(d.file(temp), vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if temp != name {
		if err := d.fs.Rename(d.file(temp), d.file(name)); err != nil {
			return err
		}
	}
	return d.sync()
}

func (d directory) sync() error {
	f, err := d.fs.OpenDir(d.path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
