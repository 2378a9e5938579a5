package persistence

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/limiter"
)

// backupName is the directory, within the data directory, that holds the files of a backup while it is being read.
const backupName = "backup.tmp"

// Backup flushes the changes and returns a copy of the state, for Restore. Decisions continue meanwhile. The copy
// shares its files with the store. It takes disk space only for files that the store deletes before the copy is
// closed. Backup fails with ErrNoDisk without a data directory, ErrBackingUp while another backup is open,
// ErrNoLinks, or ErrClosed.
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

// backup turns the files of a Pebble checkpoint into an image that ends with a new flush. The checkpoint shares its
// files with the store by hard links, and Pebble never changes them.
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
	return NewBackup(stream, made.info().Bytes, Contents{Index: s.last.Flush, At: s.last, IDLifetimeNs: idLifetimeNs}),
		nil
}

// checkpoint flushes and adds an image record. It then links the files of the store into the directory of the backup.
func (s *Store) checkpoint(from Drainer, now func() Record) ([]imageFile, error) {
	if err := s.Flush(from, now, true); err != nil {
		return nil, err
	}
	record := encodeImageRecord(s.last.Flush, 0, nil)
	if err := s.journal.writeRecord(nil, imageRecord, record, pebble.Sync); err != nil {
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

// listFiles lists the files of a directory, without their checksums.
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

// probeLinks rejects a file system without hard links, because Pebble would make full copies there. It does not use
// guardFS, because missing hard links are no disk failure.
func (s *Store) probeLinks() error {
	on := directory{s.guard.FS, s.dir.path}
	return linksIn(on, on)
}

// linksIn tries to create a hard link in another directory.
func linksIn(from, to directory) error {
	if err := from.write("link", "link", ""); err != nil {
		return err
	}
	made := to.file("link" + tempSuffix)
	if err := removeAll(to.fs, made); err != nil { // left by a crash
		return err
	}
	if err := from.fs.Link(from.file("link"), made); err != nil {
		return fmt.Errorf("%w (%v)", errors.Join(ErrNoLinks, from.fs.Remove(from.file("link"))), err)
	}
	return errors.Join(from.fs.Remove(made), from.fs.Remove(from.file("link")))
}

// dropBackup removes the files of a backup that was closed or that a crash interrupted.
func (s *Store) dropBackup() error { return removeAll(s.dir.fs, s.dir.file(backupName)) }

func removeAll(on vfs.FS, path string) error {
	if err := on.RemoveAll(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
