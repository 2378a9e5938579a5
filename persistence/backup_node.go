package persistence

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/limiter"
)

// backupName is the directory, in the data directory, of the files that a backup is
// read from. It lasts as long as the backup.
const backupName = "backup.tmp"

// Backup saves what changed and returns a copy of the state, for Restore. Deciding goes
// on meanwhile: like what a crash leaves, keys that one MULTI/EXEC changes together may
// be as of different moments within the save. It takes no more room on the disk than
// what is written before it is closed. ErrNoDisk without a data directory, ErrBackingUp
// while another backup is not closed, ErrNoLinks, ErrClosed.
func (n *Node) Backup() (*limiter.Backup, error) {
	if n.store == nil {
		return nil, ErrNoDisk
	}
	n.disk.Lock()
	defer n.disk.Unlock()
	select {
	case <-n.stopped:
		return nil, ErrClosed
	default:
	}
	return n.store.backup(n.table, n.clock.Record, n.idLifetimeNs)
}

// backup makes files that a checkpoint has in common with the store, and of which
// Pebble changes none, into an image that ends with the flush it makes.
func (s *Store) backup(from Drainer, now func() Record, idLifetimeNs int64) (*limiter.Backup, error) {
	if _, err := s.dir.fs.Stat(s.dir.file(backupName)); !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, ErrBackingUp)
	}
	if err := s.probeLinks(); err != nil {
		return nil, err
	}
	files, err := s.checkpoint(from, now)
	if err != nil {
		s.fatal(fmt.Errorf("%w: %w", ErrDisk, err))
		return nil, err
	}
	made := imageMeta{index: s.last.Flush, files: files}
	stream := newImageStream(directory{s.dir.fs, s.dir.file(backupName)}, files)
	stream.unmeasured = true
	stream.must, stream.release = refusal, s.dropBackup
	return NewBackup(stream, made.info().Bytes, Contents{Index: s.last.Flush, At: s.last, IDLifetimeNs: idLifetimeNs}), nil
}

// checkpoint flushes, with a record that makes an image of the store, and links the
// files it then consists of into the directory of the backup.
func (s *Store) checkpoint(from Drainer, now func() Record) ([]imageFile, error) {
	if err := s.Flush(from, now, true); err != nil {
		return nil, err
	}
	if err := s.journal.end(nil, imageRecord, encodeImageRecord(s.last.Flush, 0, nil), pebble.Sync); err != nil {
		return nil, err
	}
	if err := s.db.Flush(); err != nil {
		return nil, err
	}
	in := directory{s.dir.fs, s.dir.file(backupName)}
	if err := s.db.Checkpoint(in.path); err != nil {
		return nil, err
	}
	return listFiles(in)
}

// listFiles names the files of a directory, without their checksums.
func listFiles(in directory) (files []imageFile, err error) {
	names, err := in.fs.List(in.path)
	for _, name := range names {
		info, statErr := in.fs.Stat(in.file(name))
		if err = errors.Join(err, statErr); err != nil {
			return nil, err
		}
		files = append(files, imageFile{name: name, size: info.Size()})
	}
	return files, err
}

// probeLinks refuses a file system without hard links, which Pebble would make full
// copies on. It asks past the guard: that there are none is no failure of the disk.
func (s *Store) probeLinks() error {
	on := directory{s.guard.FS, s.dir.path}
	return linksIn(on, on)
}

// linksIn tries a hard link from one directory to another.
func linksIn(from, to directory) error {
	if err := from.write("link", "link", ""); err != nil {
		return err
	}
	made := to.file("link" + tempSuffix)
	if err := removeAll(to.fs, made); err != nil { // which a crash left
		return err
	}
	if err := from.fs.Link(from.file("link"), made); err != nil {
		return fmt.Errorf("%w (%v)", errors.Join(ErrNoLinks, from.fs.Remove(from.file("link"))), err)
	}
	return errors.Join(from.fs.Remove(made), from.fs.Remove(from.file("link")))
}

// dropBackup removes the files of a backup: one that was closed, or that a crash left.
func (s *Store) dropBackup() error { return removeAll(s.dir.fs, s.dir.file(backupName)) }

func removeAll(on vfs.FS, path string) error {
	if err := on.RemoveAll(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
