package commands

import (
	"slices"
	"sync"
	"sync/atomic"
)

// clientRegistry holds the sessions of a server by their id.
type clientRegistry struct {
	count *atomic.Int64 // number of sessions, for readers that need no more

	mu  sync.Mutex
	all map[int64]*Session
}

func newClientRegistry(count *atomic.Int64) *clientRegistry {
	return &clientRegistry{count: count, all: make(map[int64]*Session)}
}

func (r *clientRegistry) add(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[s.about.ID] = s
	r.count.Store(int64(len(r.all)))
}

func (r *clientRegistry) remove(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, s.about.ID)
	r.count.Store(int64(len(r.all)))
}

// list returns the sessions in the order of their arrival.
func (r *clientRegistry) list() []*Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*Session, 0, len(r.all))
	for _, s := range r.all {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *Session) int { return int(a.about.ID - b.about.ID) })
	return all
}

// pubsubCount returns how many clients are subscribed.
func (r *clientRegistry) pubsubCount() (n int) {
	for _, s := range r.list() {
		if s.about.Kind() == "pubsub" {
			n++
		}
	}
	return n
}
