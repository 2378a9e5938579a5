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

// maxRemovals bounds the queue of removals. It is several times the number of files that one snapshot makes
// superfluous. When the queue is full, a file is removed at once.
const maxRemovals = 64

// Before its removal, a file is truncated by shrinkBytes after each shrinkPause. ext4 with discard tells the disk
// which blocks are free. The release of 16 MB at once then delays every fsync by 20 to 35 ms. In steps, the release
// delays them by 2 to 8 ms.
const (
	shrinkBytes = 1 << 20
	shrinkPause = 5 * time.Millisecond
)

// removals removes files in the background, one after the other. After a crash, the library removes the remaining
// files when it opens the log. It knows its files from its metadata, which are written before a removal.
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
			r.log.Error("cannot remove a log file that is no longer needed", "name",
				one.name, "error", err)
		}
	}
}

// shrink truncates a file in steps until the log is closed. A file that cannot be truncated is removed as it is.
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

// Delete queues the removal of a file, or removes it at once if the queue is full or closed.
func (r *removals) Delete(dir, name string) error {
	if r.later(removal{dir, name}) {
		return nil
	}
	return r.VFS.Delete(dir, name)
}

// later queues a removal. It reports false if the queue is full or closed.
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
