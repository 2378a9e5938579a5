package wallog

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft-wal/types"
)

// maxRemovals are waiting to be carried out: as many files as a snapshot's worth of
// log has, several times over. Beyond, they are carried out at once.
const maxRemovals = 64

// A file is cut short by shrinkBytes after each shrinkPause before it is removed. Where the
// file system tells the disk which blocks are free (ext4 with discard), giving back 16 MB at
// once keeps every fsync waiting for 20 to 35 ms; in such steps for 2 to 8.
const (
	shrinkBytes = 1 << 20
	shrinkPause = 5 * time.Millisecond
)

// removals carries out the removal of files in the background, one after the other.
// What a crash leaves undone the library removes when it opens the log: it knows its
// files from its metadata, which have been written by then.
type removals struct {
	types.VFS
	log     hclog.Logger
	running sync.WaitGroup

	mu     sync.Mutex
	queue  chan removal
	closed atomic.Bool // set under mu
}

type removal struct{ dir, name string }

func newRemovals(files types.VFS, log hclog.Logger) *removals {
	r := &removals{VFS: files, log: log, queue: make(chan removal, maxRemovals)}
	r.running.Go(r.run)
	return r
}

func (r *removals) run() {
	for one := range r.queue {
		r.shrink(filepath.Join(one.dir, one.name))
		if err := r.VFS.Delete(one.dir, one.name); err != nil {
			r.log.Error("a file of the log that is not needed any more cannot be removed", "name", one.name, "error", err)
		}
	}
}

// shrink cuts a file short, until somebody waits for it. One that cannot be cut is removed
// as it is.
func (r *removals) shrink(name string) {
	info, err := os.Stat(name)
	if err != nil {
		return
	}
	for left := info.Size() - shrinkBytes; left > 0 && !r.closed.Load(); left -= shrinkBytes {
		if os.Truncate(name, left) != nil {
			return
		}
		time.Sleep(shrinkPause)
	}
}

// Delete removes a file soon.
func (r *removals) Delete(dir, name string) error {
	if r.later(removal{dir, name}) {
		return nil
	}
	return r.VFS.Delete(dir, name)
}

// later queues a removal. It reports false when there is no room, or nobody to do it.
func (r *removals) later(one removal) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed.Load() {
		return false
	}
	select {
	case r.queue <- one:
		return true
	default:
		return false
	}
}

func (r *removals) close() {
	r.mu.Lock()
	r.closed.Store(true)
	close(r.queue)
	r.mu.Unlock()
	r.running.Wait()
}
