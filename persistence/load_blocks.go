package persistence

import (
	"context"
	"fmt"
	"runtime"

	"github.com/weir-project/weir/engine"
)

// loadWorkers are the queues of the goroutines that load blocks, at most one per processor. The lane of a block chooses
// its queue.
type loadWorkers struct {
	ctx     context.Context
	queues  []chan stored
	loaded  chan struct{} // see await
	ordered bool          // a block of format 6 was handed out, and none of format 5 may follow
}

func newLoadWorkers(ctx context.Context) *loadWorkers {
	w := &loadWorkers{ctx: ctx, queues: make([]chan stored, min(runtime.GOMAXPROCS(0), laneCount))}
	for i := range w.queues {
		w.queues[i] = make(chan stored, waitingBlocks)
	}
	w.loaded = make(chan struct{}, len(w.queues))
	return w
}

// hand hands a block to its worker. In format 5, a limiter of a policy had another lane than it has since. So the
// blocks of format 5 are loaded before the first block of format 6.
func (w *loadWorkers) hand(kind byte, block []byte) error {
	switch ordered := kind >= orderedBlock; {
	case ordered && !w.ordered:
		w.ordered = true
		if err := w.await(); err != nil {
			return err
		}
	case w.ordered && !ordered:
		return fmt.Errorf("%w (a block of changes is older than the block before it)", ErrDamaged)
	}
	return w.send(int(kind%laneCount)%len(w.queues), stored{bytes: block})
}

// await waits until all blocks that were handed out are loaded.
func (w *loadWorkers) await() error {
	for i := range w.queues {
		if err := w.send(i, stored{loaded: w.loaded}); err != nil {
			return err
		}
	}
	for range w.queues {
		select {
		case <-w.loaded:
		case <-w.ctx.Done():
			return w.ctx.Err()
		}
	}
	return nil
}

func (w *loadWorkers) send(worker int, block stored) error {
	select {
	case w.queues[worker] <- block:
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

// end ends the workers.
func (w *loadWorkers) end() {
	for _, q := range w.queues {
		close(q)
	}
}

// stored is a block as read. If loaded is not nil, there is no block, and the worker only sends.
type stored struct {
	bytes  []byte
	loaded chan<- struct{}
}

// changes calls each with each change of the block. The change is valid only during that call.
func (b stored) changes(each func(engine.Change) error) error {
	r := newBlockReader(b.bytes)
	for len(r.rest) > 0 {
		c, ok := r.next()
		if !ok {
			return fmt.Errorf("%w (a block of changes contradicts itself)", ErrDamaged)
		}
		if err := each(c); err != nil {
			return err
		}
	}
	return nil
}

// loadBlocks loads blocks until the channel is closed.
func loadBlocks(ctx context.Context, blocks <-chan stored, g *gathered) error {
	for {
		select {
		case block, ok := <-blocks:
			if !ok {
				return g.load()
			}
			if block.loaded != nil {
				if err := g.load(); err != nil {
					return err
				}
				block.loaded <- struct{}{} // never blocks: see newLoadWorkers
				continue
			}
			if err := block.changes(g.add); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

const (
	// gatherChanges is how many changes are loaded at once. A table loads many at once faster than one by one, and
	// sorts as many together.
	gatherChanges = 512
	// gatherBytes bounds the keys and values of these changes, unless one alone is larger.
	gatherBytes = 128 << 10
)

// gathered are changes of several blocks that are not loaded yet.
type gathered struct {
	at      engine.Stamp
	to      Loader
	changes []engine.Change
	bytes   []byte // of the changes

	progress *Progress
}

// add adds a copy of a change.
func (g *gathered) add(c engine.Change) error {
	if n := len(c.Key) + len(c.Value); len(g.changes) == gatherChanges || len(g.bytes)+n > cap(g.bytes) {
		if err := g.load(); err != nil {
			return err
		}
		if n > cap(g.bytes) {
			g.bytes = make([]byte, 0, max(n, gatherBytes))
		}
	}
	c.Key = g.copy(c.Key)
	if c.Value != nil {
		c.Value = g.copy(c.Value)
	}
	g.changes = append(g.changes, c)
	return nil
}

// copy copies b behind the bytes of the changes before, which have the capacity.
func (g *gathered) copy(b []byte) []byte {
	from := len(g.bytes)
	g.bytes = append(g.bytes, b...)
	return g.bytes[from:len(g.bytes):len(g.bytes)]
}

// load loads the changes.
func (g *gathered) load() error {
	bad, err := g.to.Load(g.at, g.changes)
	if err != nil {
		err = fmt.Errorf("%w (entry %.64q: %v)", ErrDamaged, g.changes[bad].Key, err)
	}
	g.progress.loaded(len(g.changes))
	if g.changes, g.bytes = g.changes[:0], g.bytes[:0]; cap(g.bytes) > gatherBytes {
		g.bytes = nil
	}
	return err
}
