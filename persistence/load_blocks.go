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
	queues  []chan parcel
	filling []parcel // by queue: what is sent next
	loaded  chan struct{}
	ordered bool // a block of format 6 was handed out, and none of format 5 may follow
}

const (
	// parcelBytes is the size from which blocks are sent to a worker together.
	parcelBytes = 64 << 10
	// waitingParcels is the length of each queue. While a worker loads what it has gathered, the queue must hold as
	// much for it, or the reader waits and the other workers have nothing to do.
	waitingParcels = 16
)

// parcel is blocks as read. If loaded is not nil, the worker loads what it has gathered, and then sends.
type parcel struct {
	blocks [][]byte
	bytes  int
	loaded chan<- struct{}
}

func newLoadWorkers(ctx context.Context) *loadWorkers {
	n := min(runtime.GOMAXPROCS(0), laneCount)
	w := &loadWorkers{ctx: ctx, queues: make([]chan parcel, n), filling: make([]parcel, n)}
	for i := range w.queues {
		w.queues[i] = make(chan parcel, waitingParcels)
	}
	w.loaded = make(chan struct{}, n)
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
	worker := int(kind%laneCount) % len(w.queues)
	p := &w.filling[worker]
	p.blocks, p.bytes = append(p.blocks, block), p.bytes+itemKeyLen+len(block)
	if p.bytes < parcelBytes {
		return nil
	}
	return w.send(worker)
}

// await waits until all blocks that were handed out are loaded.
func (w *loadWorkers) await() error {
	for i := range w.queues {
		w.filling[i].loaded = w.loaded
		if err := w.send(i); err != nil {
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

// send sends what a worker gets next.
func (w *loadWorkers) send(worker int) error {
	select {
	case w.queues[worker] <- w.filling[worker]:
		w.filling[worker] = parcel{}
		return nil
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
}

// end hands out what is left, and ends the workers.
func (w *loadWorkers) end() {
	for i, q := range w.queues {
		_ = w.send(i) // fails if the load has failed
		close(q)
	}
}

// changes calls each with each change of a block. The change is valid only during that call.
func changes(block []byte, each func(engine.Change) error) error {
	r := newBlockReader(block)
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

// loadParcels loads blocks until the channel is closed.
func loadParcels(ctx context.Context, parcels <-chan parcel, g *gathered) error {
	for {
		select {
		case p, ok := <-parcels:
			if !ok {
				return g.load()
			}
			for _, block := range p.blocks {
				if err := changes(block, g.add); err != nil {
					return err
				}
			}
			if p.loaded != nil {
				if err := g.load(); err != nil {
					return err
				}
				p.loaded <- struct{}{} // never blocks: see newLoadWorkers
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// gatherBytes bounds the keys and values of the changes that are loaded at once, unless one alone is larger. Most
// limiters have fewer for each of engine.LoadBatch changes.
const gatherBytes = 64 * engine.LoadBatch

// firstBytes is the memory for the first changes. A node may have a thousand groups with a few limiters each.
const firstBytes = 4 << 10

// gathered are changes of several blocks that are not loaded yet.
type gathered struct {
	at      engine.Stamp
	to      Loader
	changes []engine.Change
	size    int    // bytes of the changes
	bytes   []byte // of the newest changes

	progress *Progress
}

// add adds a copy of a change.
func (g *gathered) add(c engine.Change) error {
	n := len(c.Key) + len(c.Value)
	if len(g.changes) == engine.LoadBatch || g.size > 0 && g.size+n > gatherBytes {
		if err := g.load(); err != nil {
			return err
		}
	}
	if len(g.bytes)+n > cap(g.bytes) { // the changes before keep the memory that they have
		g.bytes = make([]byte, 0, max(n, firstBytes, min(2*cap(g.bytes), gatherBytes)))
	}
	g.size += n
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
	g.changes, g.size = g.changes[:0], 0
	if g.bytes = g.bytes[:0]; cap(g.bytes) > gatherBytes {
		g.bytes = nil
	}
	return err
}
