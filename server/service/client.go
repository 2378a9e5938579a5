package service

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Client describes a session for CLIENT LIST and INFO.
type Client struct {
	Addr, LocalAddr string
	ID              int64
	Since           time.Time

	active atomic.Int64            // when it last sent a command, Unix nanoseconds
	Last   atomic.Pointer[Command] // that command

	mu                       sync.Mutex
	Name, LibName, LibVer    string
	User                     string // the authenticated user; "": none yet
	Proto, Subs, PatternSubs int
	Queued                   int // commands in MULTI, -1: none
	Monitor                  bool
	Readonly                 bool // READONLY
	DB                       int  // the selected database
}

// Init initialises the description of a client.
func (i *Client) Init(id int64, addr, laddr string) {
	i.ID, i.Addr, i.LocalAddr, i.Since = id, addr, laddr, time.Now()
	i.Proto, i.Queued = 2, -1
	i.active.Store(i.Since.UnixNano())
}

// Update changes the fields under the lock.
func (i *Client) Update(change func(*Client)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(i)
}

func (i *Client) ClientName() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.Name
}

func (i *Client) Protocol() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.Proto
}

// Kind returns the client's type, by which CLIENT LIST and KILL filter.
func (i *Client) Kind() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.Subs+i.PatternSubs > 0 {
		return "pubsub"
	}
	return "normal"
}

// Line describes the session as CLIENT LIST does, with every field that programs read. Fields without a meaning in weir
// are zero.
func (i *Client) Line(now time.Time) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	flags, last := "N", "NULL"
	switch {
	case i.Monitor:
		flags = "O"
	case i.Subs+i.PatternSubs > 0:
		flags = "P"
	case i.Queued >= 0:
		flags = "x"
	}
	if i.Readonly {
		flags = strings.TrimPrefix(flags, "N") + "r"
	}
	if cmd := i.Last.Load(); cmd != nil {
		last = cmd.Full
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=%s db=%d sub=%d psub=%d ssub=0 "+
		"multi=%d watch=0"+
		" qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=0 events=r cmd=%s "+
		"user=%s redir=-1 resp=%d"+
		" lib-name=%s lib-ver=%s\n",
		i.ID, i.Addr, i.LocalAddr, i.Name, int64(now.Sub(i.Since).Seconds()),
		int64(now.Sub(time.Unix(0, i.active.Load())).Seconds()),
		flags, i.DB, i.Subs, i.PatternSubs, i.Queued, last, i.User, i.Proto, i.LibName, i.LibVer)
}

func (i *Client) UserName() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.User
}
