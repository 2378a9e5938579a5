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
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Names in a directory of images. See Images.
const (
	imagesName = "images"
	workName   = "work"
	metaName   = "META"
	tempSuffix = ".tmp"
)

// keepImages is the number of images that stay: the newest image, and the image before it. A caller of List may still
// Send the second one, for example to a follower, although a new image was made since List.
const keepImages = 2

// maxManifestBytes keeps Pebble's manifest small, because every image contains a copy.
const maxManifestBytes = 1 << 20

// ImageInfo describes a complete image.
type ImageInfo struct {
	ID          string // its directory name: index, "-", term, each in 20 digits
	Index, Term uint64 // the last log entry that the image contains
	Meta        []byte // the bytes that the caller of Seal or Receive gave, at most maxMetaBytes
	Bytes       int64  // the length of the stream of Send
}

// Images keeps images of the state of a replicated node. The node decides from its table in memory, and its log makes
// the decisions durable. An image is the state at one log entry. A node that restarts continues from its newest image.
// A node that lacks entries which the leader has compacted continues from an image of the leader.
//
// The directory contains
//
//	work/    a Pebble store without a write-ahead log, emptied at every start; see CloseIdle
//	images/  a directory for each image: Pebble's files in state/, and META
//	NEWEST   the name of the newest image: see checkNewest
//
// Write adds changes to work/ at any time, and Seal creates an image of it. An image shares unchanged files with work/
// and with the previous image by hard links. Its cost therefore follows the changes and not the size of the table.
//
// Write, Clear, Seal and Load exclude each other. List, Send and Receive may run concurrently with them. A disk failure
// after OpenImages ends the process, through StoreOptions.OnFatal.
type Images struct {
	dir      directory
	guard    *guardFS
	lock     *pebble.Lock
	log      *slog.Logger
	renewal  renewal
	fatal    func(error)
	progress *Progress
	loaded   atomic.Bool // if true, damage found in the background is fatal

	work    sync.Mutex // acquired before mu
	db      *pebble.DB
	journal journal
	// idle is when work/ was last flushed, or zero if it has changed since. See CloseIdle.
	idle       time.Time
	closedIdle bool // CloseIdle has closed db
	eager      bool // see StoreOptions
	// known lists the files of the image to which work/ was last equal. Pebble never changes a written table, so its
	// checksum stays valid.
	known []imageFile

	mu     sync.Mutex
	newest string         // the content of the NEWEST file
	pinned map[string]int // open streams per image; an image with an open stream is not removed
	temps  int            // temporary directories made so far
}

// OpenImages creates or opens the directory of images. It removes the temporary directories that a crash left, and
// empties work/. If List returns an image, the caller then calls Load. Errors say what was found and what to do:
// ErrInUse, ErrForeign, ErrDamaged, ErrNoLinks, ErrNotWritable, ErrDiskFull.
func OpenImages(o StoreOptions) (*Images, error) {
	o.ready()
	m := &Images{log: o.Logger, renewal: o.renewal, fatal: stopper(o.Logger, o.OnFatal), pinned: map[string]int{},
		eager: o.eager, progress: o.Progress}
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

// inspect refuses a directory that is not one of images, before anything in it is deleted.
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

// removeLeftovers removes temporary directories that a crash left.
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

// probeLinks refuses a file system without hard links, because every image would be a full copy there.
func (m *Images) probeLinks() error {
	return linksIn(directory{m.dir.fs, m.dir.file(workName)}, m.images())
}

// Close releases the directory. Changes since the last Seal are lost. The caller has closed every stream and Incoming.
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

// images returns the directory of the images. image returns the directory of one image.
func (m *Images) images() directory { return directory{m.dir.fs, m.dir.file(imagesName)} }

func (m *Images) image(name string) directory { return directory{m.dir.fs, m.images().file(name)} }

// files returns the directory of Pebble's files in an image.
func (m *Images) files(name string) directory {
	return directory{m.dir.fs, m.image(name).file(stateName)}
}

// must ends the process unless err is nil. It reports damage as ErrDamagedLive, because a restart does not repair
// damage.
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
