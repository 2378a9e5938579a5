package sharedlog

import "runtime"

// MaxBatchBytes bounds the records of one append.
const MaxBatchBytes = maxBatchBytes

// AwaitWaiting waits until so many requests wait for the next append.
func AwaitWaiting(l *Log, n int) {
	for waiting := -1; waiting != n; runtime.Gosched() {
		l.queue.mu.Lock()
		waiting = len(l.queue.waiting)
		l.queue.mu.Unlock()
	}
}

// AwaitCompaction waits until the compactor has looked at the log, and has nothing to do.
func AwaitCompaction(l *Log) {
	for {
		if l.queue.mu.Lock(); l.queue.failed != nil {
			l.queue.mu.Unlock()
			return
		}
		l.queue.mu.Unlock()
		if l.compactor.done.Load() == l.compactor.asked.Load() {
			return
		}
		runtime.Gosched()
	}
}

// Record encodes the header of an entry's record.
func Record(part uint32, index uint64) []byte {
	return record{kind: kindEntry, part: part, index: index}.appendHeader(nil)
}
