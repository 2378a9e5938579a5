package wallog

import (
	"sync"

	"github.com/hashicorp/go-hclog"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/types"
)

// maxRemovals are waiting to be carried out: as many files as a snapshot's worth of
// log has, several times over. Beyond, they are carried out at once.
const maxRemovals = 64

// Log is raft-wal without the wait for the removal of files. The library removes them
// while appends wait, and each costs a write of the file system's journal: together
// some tens of milliseconds behind each snapshot, in which nothing is decided.
type Log struct {
	*wal.WAL
	files *removals
}

// Close ends the log and returns when nothing of it runs.
func (l *Log) Close() error {
	err := l.WAL.Close()
	l.files.close()
	return err
}

// removals carries out the removal of files in the background, one after the other.
// What a crash leaves undone the library removes when it opens the log: it knows its
// files from its metadata, which have been written by then.
type removals struct {
	types.VFS
	log     hclog.Logger
	running sync.WaitGroup

	mu     sync.Mutex
	queue  chan removal
	closed bool
}

type removal struct{ dir, name string }

func newRemovals(files types.VFS, log hclog.Logger) *removals {
	r := &removals{VFS: files, log: log, queue: make(chan removal, maxRemovals)}
	r.running.Go(r.run)
	return r
}

func (r *removals) run() {
	for one := range r.queue {
		if err := r.VFS.Delete(one.dir, one.name); err != nil {
			r.log.Error("a file of the log that is not needed any more cannot be removed", "name", one.name, "error", err)
		}
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
	if r.closed {
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
	r.closed = true
	close(r.queue)
	r.mu.Unlock()
	r.running.Wait()
}
