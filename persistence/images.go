package persistence

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// The names in a directory of images. See Images.
const (
	imagesName = "images"
	workName   = "work"
	metaName   = "META"
	tempSuffix = ".tmp"
)

// keepImages is how many images stay: the newest, and the one before it for a
// follower that has just been told its name.
const keepImages = 2

// maxManifestBytes keeps Pebble's list of files small: every image has a copy.
const maxManifestBytes = 1 << 20

// ImageInfo describes a complete image.
type ImageInfo struct {
	ID          string // the name of its directory: index, "-", term, each in 20 digits
	Index, Term uint64 // the last log entry the image contains
	Meta        []byte // the caller's own, at most maxMetaBytes
	Bytes       int64  // the length of the stream that Send gives
}

// Images keeps the state of a replicated node. The table in memory is the
// authority and the log its durability; an image is the state at one entry of the
// log, from which a restart or a node that fell behind goes on.
//
// The directory holds
//
//	work/    a Pebble store without a log of its own, wiped at every start
//	images/  a directory for each image: Pebble's files in state/, and META
//	NEWEST   which image is the newest, see checkNewest
//
// Changes go into work/ at any time; Seal makes an image of it. An image shares
// its unchanged files with work/ and the image before by hard links, so it costs
// what changed and not the size of the table.
//
// One goroutine at a time uses Write, Clear, Seal and Load (more wait for each
// other); List, Send and Receive may run beside them. A disk that fails once
// OpenImages has returned ends the process, through StoreOptions.OnFatal.
type Images struct {
	dir     directory
	guard   *guardFS
	lock    *pebble.Lock
	log     *slog.Logger
	renewal renewal
	fatal   func(error)
	loaded  atomic.Bool // damage found in the background is fatal

	work    sync.Mutex // held before mu
	db      *pebble.DB
	journal journal
	// known are the files of the image that work/ was last equal to. Pebble never
	// changes a table it has written, so their checksums need no second reading.
	known []imageFile

	mu     sync.Mutex
	newest string         // what the NEWEST file says
	held   map[string]int // images being read: they stay
	temps  int            // temporary directories made so far
}

// OpenImages makes or opens the directory of images. What a crash left unfinished
// is removed, and work/ begins empty: Load an image next if List has one. Errors
// say what was found and what to do: ErrInUse, ErrForeign, ErrNoLinks,
// ErrNotWritable, ErrDiskFull.
func OpenImages(o StoreOptions) (*Images, error) {
	o.ready()
	m := &Images{log: o.Logger, renewal: o.renewal, fatal: stopper(o.Logger, o.OnFatal), held: map[string]int{}}
	m.guard = &guardFS{FS: o.FS, fatal: m.fatal}
	m.dir = directory{fs: m.guard, path: o.Dir}
	if err := m.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory %q: %w", o.Dir, refusal(err)), m.Close())
	}
	return m, nil
}

func (m *Images) open() (err error) {
	if err := m.inspect(); err != nil {
		return err
	}
	if err := m.checkNewest(); err != nil {
		return err
	}
	if err := m.dir.make(m.images().path); err != nil {
		return err
	}
	if m.lock, err = lockDirectory(m.dir.path, m.dir.fs); err != nil {
		return err
	}
	if err := m.removeLeftovers(); err != nil {
		return err
	}
	if _, err := m.openWork(directory{}, nil); err != nil {
		return err
	}
	if err := m.probeLinks(); err != nil {
		return err
	}
	m.guard.armed.Store(true)
	m.loaded.Store(true)
	return nil
}

// inspect refuses a directory that is not one of images, before anything in it is
// wiped.
func (m *Images) inspect() error {
	names, err := m.dir.fs.List(m.dir.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, foreign := range []string{formatName, freshName, workName} {
		if slices.Contains(names, foreign) && !slices.Contains(names, imagesName) {
			return fmt.Errorf("%w (found %q and no %s directory)", ErrForeign, foreign, imagesName)
		}
	}
	return nil
}

// removeLeftovers removes what a crash left unfinished.
func (m *Images) removeLeftovers() error {
	names, err := m.images().fs.List(m.images().path)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasSuffix(name, tempSuffix) {
			if err := m.dir.fs.RemoveAll(m.images().file(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// probeLinks refuses a file system without hard links: every image would be a
// full copy, if Pebble made one at all.
func (m *Images) probeLinks() error {
	return linksIn(directory{m.dir.fs, m.dir.file(workName)}, m.images())
}

// Close lets go of the directory. What was written since the last Seal is
// forgotten. Streams and Incoming must have ended.
func (m *Images) Close() error {
	m.work.Lock()
	defer m.work.Unlock()
	err := m.closeWork()
	if m.lock != nil {
		err = errors.Join(err, m.lock.Close())
		m.lock = nil
	}
	return err
}

// images is the directory the images are in; image that of one.
func (m *Images) images() directory { return directory{m.dir.fs, m.dir.file(imagesName)} }

func (m *Images) image(name string) directory { return directory{m.dir.fs, m.images().file(name)} }

// files is the directory of Pebble's files in an image.
func (m *Images) files(name string) directory {
	return directory{m.dir.fs, m.image(name).file(stateName)}
}

// must ends the process at a failure of the disk. Damage is told apart: there,
// restarting does not help.
func (m *Images) must(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrDamaged), pebble.IsCorruptionError(err), errors.Is(err, fs.ErrNotExist):
		m.fatal(fmt.Errorf("%w: %w", ErrDamagedLive, err))
	case errors.Is(refusal(err), ErrDiskFull):
		m.fatal(fmt.Errorf("%w: %w", ErrDiskFullLive, err))
	default:
		m.fatal(fmt.Errorf("%w: %w", ErrDisk, err))
	}
	return err
}
