package sharedlog_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/raftstore/sharedlog"
)

// step makes a random change of a part and of its model. It returns the changed model, and the change of the part.
func step(r *rand.Rand, before *model) (after *model, change func(*sharedlog.Part) error) {
	first, _ := before.FirstIndex()
	last, _ := before.LastIndex()
	after = before.clone()
	switch n := r.IntN(20); {
	case n < 11:
		next := last + 1
		if last == 0 {
			next = 1 + r.Uint64N(100) // a log without entries may begin anywhere, also earlier than before
		}
		var ls []*raft.Log
		for range 1 + r.IntN(4) {
			l := entry(next, r.Uint64N(5), r.IntN(300))
			if r.IntN(4) == 0 {
				l.Extensions, l.AppendedAt = []byte("extension"), time.Unix(1, 2).UTC()
			}
			ls, next = append(ls, l), next+1
		}
		_ = after.StoreLogs(ls)
		return after, func(p *sharedlog.Part) error { return p.StoreLogs(ls) }
	case n < 14 && last > 0: // a snapshot
		high := first + r.Uint64N(last-first+1)
		if r.IntN(4) == 0 {
			high = last
		}
		_ = after.DeleteRange(first, high)
		return after, func(p *sharedlog.Part) error { return p.DeleteRange(first, high) }
	case n < 16 && last > 0: // a conflict
		low := last - r.Uint64N(min(last-first+1, 5))
		_ = after.DeleteRange(low, last)
		return after, func(p *sharedlog.Part) error { return p.DeleteRange(low, last) }
	default:
		key, value := fmt.Sprint("key", r.IntN(3)), r.Uint64()
		after.stable[key] = value
		return after, func(p *sharedlog.Part) error { return p.SetUint64([]byte(key), value) }
	}
}

// TestPartsBehaveLikeStoresOfTheirOwn makes random changes of several parts, and opens the log again and again. Each
// part must equal a store of the Raft library after the same changes.
func TestPartsBehaveLikeStoresOfTheirOwn(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		base := newMemory()
		models := map[uint32]*model{}
		for name := range uint32(5) {
			models[name+1] = newModel()
		}
		for range 12 {
			l := open(base, small)
			parts := map[uint32]*sharedlog.Part{}
			for name, m := range models {
				parts[name] = part(t, l, name)
				require.NoError(t, m.differs(parts[name]), "seed %d, part %d", seed, name)
			}
			for range r.IntN(80) {
				name := 1 + r.Uint32N(5)
				next, change := step(r, models[name])
				require.NoError(t, change(parts[name]))
				require.NoError(t, next.differs(parts[name]), "seed %d, part %d", seed, name)
				models[name] = next
			}
			require.NoError(t, l.Close())
		}
	}
}

// TestPartsAreUsedConcurrently changes each part in a goroutine of its own, while others read it.
func TestPartsAreUsedConcurrently(t *testing.T) {
	const parts, steps = 8, 150
	base := newMemory()
	l := open(base, small)
	models := make([]*model, parts)
	var running sync.WaitGroup
	for i := range parts {
		p := part(t, l, uint32(i+1))
		stop := make(chan struct{})
		running.Go(func() {
			defer close(stop)
			models[i] = newModel()
			r := rand.New(rand.NewPCG(uint64(i), 2))
			for range steps {
				next, change := step(r, models[i])
				if err := change(p); err != nil {
					panic(err)
				}
				models[i] = next
			}
		})
		running.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				last, _ := p.LastIndex()
				var got raft.Log
				if err := p.GetLog(last, &got); err == nil && got.Index != last {
					panic(fmt.Sprint("entry ", got.Index, " instead of ", last))
				} else if err != nil && err != raft.ErrLogNotFound {
					panic(err)
				}
			}
		})
	}
	running.Wait()
	require.NoError(t, l.Close())
	l = open(base, small)
	for i, m := range models {
		require.NoError(t, m.differs(part(t, l, uint32(i+1))))
	}
	require.NoError(t, l.Close())
}

// TestACrashLosesNothing takes an image of the records before and after each append and each truncation. Every image
// must hold what was acknowledged, with or without the write in progress.
func TestACrashLosesNothing(t *testing.T) {
	images := 0
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 3))
		base := newMemory()
		var mu sync.Mutex // guards the models, because the compactor truncates at any time
		models, next := map[uint32]*model{1: newModel(), 2: newModel(), 3: newModel()}, map[uint32]*model{}
		base.after = func(image *memory) {
			mu.Lock()
			defer mu.Unlock()
			images++
			l := open(image, small)
			for name, m := range models {
				p := part(t, l, name)
				if err := m.differs(p); err != nil && (next[name] == nil || next[name].differs(p) != nil) {
					t.Errorf("seed %d, part %d: %v", seed, name, err)
				}
			}
			_ = l.Close()
		}
		l := open(base, small)
		parts := map[uint32]*sharedlog.Part{1: part(t, l, 1), 2: part(t, l, 2), 3: part(t, l, 3)}
		for range 150 {
			name := 1 + r.Uint32N(3)
			mu.Lock()
			after, change := step(r, models[name])
			next[name] = after
			mu.Unlock()
			require.NoError(t, change(parts[name]))
			mu.Lock()
			models[name] = after
			delete(next, name)
			mu.Unlock()
		}
		require.NoError(t, l.Close())
	}
	require.Greater(t, images, 1000)
}
