package persistence

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/weir-project/weir/engine"
)

// restoreName is the directory, in the one that is restored to, in which everything is
// made ready. A data directory with it is not ready, and no weir starts there.
const restoreName = "restore.tmp"

// Restore makes o.Dir, which must be empty or not there, the data directory of a node
// that runs alone, from a backup of any node. Its clock goes on from the backup's, as
// after a restart. Any error leaves the directory as it was: ErrNotEmpty, ErrNoBackup,
// ErrBackupNewer, or what the disk says; a failure of the disk in the midst of it ends
// the process, through o.OnFatal.
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

// fill makes the entries of a backup the state of a new store.
func (s *Store) fill(b *Unpacked) error {
	if err := s.Begin(b.At); err != nil {
		return err
	}
	err := b.Entries(func(chunk []engine.Change) error { return s.commit(chunk, b.At, pebble.NoSync) })
	if err != nil {
		return err
	}
	return s.commit(nil, b.At, pebble.Sync)
}

// RestoreTo makes o.Dir of a backup by way of build, which makes a data directory at
// the path it is given. The file named last is put in place last: without it the
// directory is none that a node starts from.
func RestoreTo(o StoreOptions, from io.Reader, last string, build func(into string, b *Unpacked) error) (Contents, error) {
	if o.FS == nil {
		o.FS = vfs.Default
	}
	dir := directory{o.FS, o.Dir}
	made, err := dir.claimEmpty()
	if err != nil {
		return Contents{}, fmt.Errorf("data directory %q: %w", o.Dir, refusal(err))
	}
	contents, err := unpack(o, from, build)
	if err == nil {
		err = dir.moveUp(last)
	}
	err = errors.Join(err, o.FS.RemoveAll(dir.file(restoreName)))
	if err != nil && made {
		err = errors.Join(err, o.FS.Remove(o.Dir))
	}
	return contents, err
}

// claimEmpty makes the directory, or finds it empty but for what a restore left that did
// not end, which goes.
func (d directory) claimEmpty() (made bool, err error) {
	names, err := d.fs.List(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, d.make(d.file(restoreName))
	}
	for _, name := range names {
		if name != restoreName && name != "lost+found" {
			return false, fmt.Errorf("%w (found %q)", ErrNotEmpty, name)
		}
	}
	if err == nil {
		err = errors.Join(removeAll(d.fs, d.file(restoreName)), d.make(d.file(restoreName)))
	}
	return false, err
}

// RestoreUnfinished reports whether a restore to the directory has not ended.
func RestoreUnfinished(on vfs.FS, dir string) bool {
	_, err := on.Stat(on.PathJoin(dir, restoreName))
	return err == nil
}

// moveUp puts what was made ready in its place.
func (d directory) moveUp(last string) error {
	ready := directory{d.fs, d.fs.PathJoin(d.path, restoreName, "ready")}
	names, err := d.fs.List(ready.path)
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == last })
	for _, name := range append(names, last) {
		if name == last { // a crash must not put it there before the rest
			if err := d.sync(); err != nil {
				return err
			}
		}
		if err := d.fs.Rename(ready.file(name), d.file(name)); err != nil {
			return err
		}
	}
	return d.sync()
}

// unpack checks every byte of a backup and has build make something of it.
func unpack(o StoreOptions, from io.Reader, build func(into string, b *Unpacked) error) (c Contents, err error) {
	if c, err = readContents(from); err != nil {
		return c, err
	}
	base := o.FS.PathJoin(o.Dir, restoreName)
	o.Dir = o.FS.PathJoin(base, "image")
	images, err := OpenImages(o)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, images.Close()) }()
	in, err := images.Receive(c.Index, c.Term, nil)
	if err != nil {
		return c, err
	}
	if _, err = io.Copy(in, from); err == nil {
		_, err = in.Close()
	}
	if err != nil {
		return c, errors.Join(notWhole(err), in.Cancel())
	}
	return c, notWhole(build(o.FS.PathJoin(base, "ready"), &Unpacked{Contents: c, images: images}))
}

// notWhole says of what is wrong with an image that it is so with a backup.
func notWhole(err error) error {
	if errors.Is(err, ErrStream) || errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w (%v)", ErrNoBackup, err)
	}
	return err
}

// Unpacked is a backup of which every byte was found right.
type Unpacked struct {
	Contents
	images *Images
}

// Clock is where a clock stands now that goes on from the backup: by what the wall clock
// advanced since, at most credit. Windows follow the wall clock however old the backup is.
func (b *Unpacked) Clock(source Source, credit time.Duration) engine.Stamp {
	return newClock(Options{Source: source, TestClock: b.At.Test, MaxDowntimeCredit: credit, MaxCalendarStep: math.MaxInt64}, &b.At).Now()
}

// Entries hands the entries to write, in pieces and in no order. They are loaded into a
// table first, so that there is none that a start would stumble over. Those idle by the
// time of the backup are left out.
func (b *Unpacked) Entries(write func([]engine.Change) error) error {
	table := engine.NewTable(engine.Options{IDLifetimeNs: b.IDLifetimeNs, TrackChanges: true})
	at := func([]byte) (engine.Stamp, error) {
		return engine.Stamp{NowNs: b.At.LimiterNs, WallOffsetNs: b.At.OffsetNs}, nil
	}
	if err := b.images.Load(imageID(b.Index, b.Term), at, table); err != nil {
		return err
	}
	table.Renew(0, math.MaxInt)
	return table.Drain(chunkEntries, func(chunk []engine.Change) error { return inBatches(chunk, write) })
}
