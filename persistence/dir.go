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

// formatVersion is the version of the data directory that this program writes. It covers the layout and the encodings
// of clock records and entries. oldestFormat is that of weir 0.1.0, and the oldest that this program reads. Format 6
// stores the limiters of a policy for a key together, and chooses lanes by engine.OrderKey (see orderedBlock).
const formatVersion, oldestFormat = 6, 5

// Names in a data directory. The file freshName marks an unfinished first start. It is renamed to formatName once the
// store exists. So weir can tell a crash during the first start from a store that lost its files.
const (
	formatName  = "FORMAT"
	freshName   = "FORMAT.new"
	flushedName = "FLUSHED"
	stateName   = "state"
)

// NodeName is the file that marks the data directory of a cluster node.
const NodeName = "NODE"

const maxSmallFile = 4096 // bytes read of a small file: FORMAT, FLUSHED, NEWEST

// directory is a directory on a file system.
type directory struct {
	fs   vfs.FS
	path string
}

func (d directory) file(name string) string { return d.fs.PathJoin(d.path, name) }

// inspect examines the directory without changing it. It returns an error for a directory in which weir must not start.
// fresh means that no state was ever saved here, so a new store may be created.
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
		if !ours && name != "lost+found" { // every new ext4 volume contains lost+found
			return false, fmt.Errorf("%w (found %q and no %s file)", ErrForeign, name, formatName)
		}
	}
	return true, nil
}

// checkFormat validates a directory that contains a FORMAT file.
func (d directory) checkFormat(names []string) error {
	_, err := d.format()
	if err == nil && !slices.Contains(names, stateName) {
		return fmt.Errorf("%w (%s is missing)", ErrDamaged, stateName)
	}
	return err
}

// format reads the format of the directory, and fails unless this program supports it.
func (d directory) format() (version int, err error) {
	text, err := d.read(formatName)
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(text, "weir data format %d\n", &version); err != nil || text != formatText(version) {
		return 0, fmt.Errorf("%w (its %s file says %q)", ErrDamaged, formatName, text)
	}
	return version, known("format", version, oldestFormat, formatVersion)
}

// known returns an error for a version that this program does not read.
func known[V int | uint32](what string, version, oldest, newest V) error {
	if version >= oldest && version <= newest {
		return nil
	}
	reason := ErrNewer
	if version < oldest {
		reason = ErrOlder
	}
	return fmt.Errorf("%w (%s %d, this weir reads %d to %d)", reason, what, version, oldest, newest)
}

func formatText(version int) string { return fmt.Sprintf("weir data format %d\n", version) }

// begin creates the directory, and in it the file that marks an unfinished first start.
func (d directory) begin() error {
	if err := d.make(d.path); err != nil {
		return err
	}
	return d.write(freshName, freshName, formatText(formatVersion))
}

// make creates a directory and its parents, and syncs the parent of each. Without this sync, a loss of power could
// remove a new directory with all its files.
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
		// a path at which no directory can be created
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%w (%v)", ErrNotWritable, err)
		}
		return err
	}
	return directory{fs: d.fs, path: parent}.sync()
}

// MakeDirectory creates a directory and its parents, so that a loss of power cannot remove them and their later files.
func MakeDirectory(on vfs.FS, path string) error { return directory{fs: on}.make(path) }

// finish records that the store exists and has its first record.
func (d directory) finish() error {
	if err := d.fs.Rename(d.file(freshName), d.file(formatName)); err != nil {
		return err
	}
	return d.sync()
}

// upgrade raises the directory to the current format. Only afterwards may the caller write data that older formats do
// not have.
func (d directory) upgrade() error {
	text, err := d.read(formatName)
	if err != nil || text == formatText(formatVersion) {
		return err
	}
	return d.write(freshName, formatName, formatText(formatVersion))
}

// WriteFile replaces a file of a directory by way of a temporary file beside it. After a crash the file has the old
// content or the new, but never a part of it. The file is on disk when WriteFile returns.
func WriteFile(on vfs.FS, dir, name, content string) error {
	return directory{on, dir}.write(name+tempSuffix, name, content)
}

// SyncDirectory syncs a directory, so that renames in it survive a loss of power.
func SyncDirectory(on vfs.FS, dir string) error { return directory{on, dir}.sync() }

func (d directory) read(name string) (string, error) {
	f, err := d.fs.Open(d.file(name))
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSmallFile))
	return strings.ToValidUTF8(string(b), "\uFFFD"), err
}

// write replaces the file name by way of the temporary file temp. After a crash the file has the old text or the new
// text, but never a part of it. If temp equals name, a crash can leave a part of the text.
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
