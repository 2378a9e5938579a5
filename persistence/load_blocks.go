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

// load loads the changes of a block into to.
func (b stored) load(at engine.Stamp, to Loader) error {
	return b.changes(func(c engine.Change) (err error) {
		if c.Value == nil {
			err = to.Unload(c.Key)
		} else {
			_, err = to.Load(at, c.Key, c.Value)
		}
		if err != nil {
			return fmt.Errorf("%w (entry %.64q: %v)", ErrDamaged, c.Key, err)
		}
		return nil
	})
}

// loadBlocks loads blocks until the channel is closed.
func loadBlocks(ctx context.Context, blocks <-chan stored, at engine.Stamp, to Loader) error {
	for {
		select {
		case block, ok := <-blocks:
			if !ok {
				return nil
			}
			if block.loaded != nil {
				block.loaded <- struct{}{} // never blocks: see newLoadWorkers
				continue
			}
			if err := block.load(at, to); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
