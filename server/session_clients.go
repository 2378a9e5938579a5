package server

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// clientInfo is what others may read about a session: CLIENT LIST, INFO.
type clientInfo struct {
	addr, laddr string
	id          int64
	since       time.Time

	active atomic.Int64            // when it last sent a command, Unix nanoseconds
	last   atomic.Pointer[command] // that command

	mu                    sync.Mutex
	name, libName, libVer string
	user                  string // who has logged in, "": nobody yet
	proto, subs, psubs    int
	queued                int // commands in MULTI, -1: none
	monitor               bool
	readonly              bool // READONLY
}

func (i *clientInfo) init(c client) {
	i.id, i.addr, i.laddr, i.since = c.ID(), c.RemoteAddr(), c.LocalAddr(), time.Now()
	i.proto, i.queued = 2, -1
	i.active.Store(i.since.UnixNano())
}

// touch remembers the command, at the price of a store a batch.
func (i *clientInfo) touch(cmd *command, at time.Time) {
	i.active.Store(at.UnixNano())
	if i.last.Load() != cmd {
		i.last.Store(cmd)
	}
}

// update changes what others may read.
func (i *clientInfo) update(change func(*clientInfo)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(i)
}

func (i *clientInfo) clientName() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.name
}

func (i *clientInfo) protocol() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.proto
}

// kind is the client's type as CLIENT LIST and KILL filter it.
func (i *clientInfo) kind() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.subs+i.psubs > 0 {
		return "pubsub"
	}
	return "normal"
}

// line describes the session as CLIENT LIST does, with every field programs
// look for; those that mean nothing here are zero.
func (i *clientInfo) line(now time.Time) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	flags, last := "N", "NULL"
	switch {
	case i.monitor:
		flags = "O"
	case i.subs+i.psubs > 0:
		flags = "P"
	case i.queued >= 0:
		flags = "x"
	}
	if i.readonly {
		flags = strings.TrimPrefix(flags, "N") + "r"
	}
	if cmd := i.last.Load(); cmd != nil {
		last = cmd.full
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=0 sub=%d psub=%d ssub=0 multi=%d watch=0"+
		" qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=%s user=%s redir=-1 resp=%d"+
		" lib-name=%s lib-ver=%s\n",
		i.id, i.addr, i.laddr, i.name, int64(now.Sub(i.since).Seconds()), int64(now.Sub(time.Unix(0, i.active.Load())).Seconds()),
		flags, i.subs, i.psubs, i.queued, last, i.user, i.proto, i.libName, i.libVer)
}

// clientRegistry knows the sessions of a server by their id.
type clientRegistry struct {
	mu  sync.Mutex
	all map[int64]*session
}

func newClientRegistry() *clientRegistry {
	return &clientRegistry{all: make(map[int64]*session)}
}

func (r *clientRegistry) add(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[s.about.id] = s
}

func (r *clientRegistry) remove(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, s.about.id)
}

func (r *clientRegistry) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// list returns the sessions in the order they came.
func (r *clientRegistry) list() []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*session, 0, len(r.all))
	for _, s := range r.all {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *session) int { return int(a.about.id - b.about.id) })
	return all
}

// pubsubCount is how many of the clients are subscribed.
func (r *clientRegistry) pubsubCount() (n int) {
	for _, s := range r.list() {
		if s.about.kind() == "pubsub" {
			n++
		}
	}
	return n
}
