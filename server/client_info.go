package server

import (
	"fmt"
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

	active atomic.Int64                // when it last sent a command, Unix nanoseconds
	last   atomic.Pointer[commandInfo] // that command

	mu                    sync.Mutex
	name, libName, libVer string
	user                  string // who has logged in, "": nobody yet
	proto, subs, psubs    int
	queued                int // commands in MULTI, -1: none
	monitor               bool
	readonly              bool // READONLY
}

// init begins to describe a client.
func (i *clientInfo) init(id int64, addr, laddr string) {
	i.id, i.addr, i.laddr, i.since = id, addr, laddr, time.Now()
	i.proto, i.queued = 2, -1
	i.active.Store(i.since.UnixNano())
}

// touch remembers the command, at the price of a store a batch.
func (i *clientInfo) touch(cmd *commandInfo, at time.Time) {
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

func (i *clientInfo) userName() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.user
}
