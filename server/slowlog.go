package server

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// defaultSlow is Redis' threshold, 10 ms: far above any decision.
	defaultSlowUs = 10_000
	// defaultSlowlogLen is Redis' length; maxSlowlogLen bounds CONFIG SET.
	defaultSlowlogLen = 128
	maxSlowlogLen     = 10_000
	// shownSlowArgs and shownSlowBytes bound one entry, as in Redis.
	shownSlowArgs  = 32
	shownSlowBytes = 128
)

// slowlog remembers the commands that took longest to carry out. A batch of
// decisions counts as one.
type slowlog struct {
	thresholdUs atomic.Int64 // negative: nothing is slow

	mu      sync.Mutex
	keep    int
	nextID  int64
	entries []slowEntry // oldest first
}

type slowEntry struct {
	id         int64
	at         time.Time
	took       time.Duration
	args       []string
	addr, name string
}

func newSlowlog() *slowlog {
	l := &slowlog{keep: defaultSlowlogLen}
	l.thresholdUs.Store(defaultSlowUs)
	return l
}

func (l *slowlog) isSlow(took time.Duration) bool {
	threshold := l.thresholdUs.Load()
	return threshold >= 0 && took.Microseconds() >= threshold
}

func (l *slowlog) add(who *clientInfo, at time.Time, took time.Duration, args []string) {
	e := slowEntry{at: at, took: took, args: shortArgs(args), addr: who.addr, name: who.clientName()}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.id = l.nextID
	l.nextID++
	l.entries = append(l.entries, e)
	l.trim()
}

func (l *slowlog) trim() {
	if over := len(l.entries) - l.keep; over > 0 {
		l.entries = append(l.entries[:0], l.entries[over:]...)
	}
}

func (l *slowlog) resize(keep int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep = keep
	l.trim()
}

func (l *slowlog) size() (entries, keep int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.entries), l.keep
}

// newest returns up to n entries, newest first.
func (l *slowlog) newest(n int) []slowEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]slowEntry, 0, min(n, len(l.entries)))
	for i := len(l.entries) - 1; i >= 0 && len(out) < n; i-- {
		out = append(out, l.entries[i])
	}
	return out
}

func (l *slowlog) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}

// shortArgs cuts a command to what an entry may hold, and says so.
func shortArgs(args []string) []string {
	short := make([]string, 0, min(len(args), shownSlowArgs))
	for i, a := range args {
		if i == shownSlowArgs-1 && len(args) > shownSlowArgs {
			return append(short, "... ("+strconv.Itoa(len(args)-i)+" more arguments)")
		}
		if over := len(a) - shownSlowBytes; over > 0 {
			a = a[:shownSlowBytes] + "... (" + strconv.Itoa(over) + " more bytes)"
		}
		short = append(short, a)
	}
	return short
}

func slowlogCommands() []*command {
	return []*command{
		{
			name: "SLOWLOG", arity: -2, group: groupServer, flags: "admin loading stale",
			summary: "The commands that took longest to carry out",
			details: "Entries are kept for commands that take at least `slowlog-log-slower-than` microseconds (10000 unless changed with CONFIG SET). A " +
				"pipeline of decisions is one entry.",
			subs: []*command{
				{name: "GET", arity: -2, syntax: "[count]", summary: "The newest entries, 10 unless told otherwise",
					reply: "An array of entries: id, Unix time, microseconds, arguments, client address, client name.", run: runSlowlogGet, bulky: true},
				{name: "LEN", arity: 2, summary: "How many entries there are", run: func(s *session, _ [][]byte) {
					n, _ := s.srv.state.slowlog.size()
					s.int(int64(n))
				}},
				{name: "RESET", arity: 2, summary: "Forget all entries", run: func(s *session, _ [][]byte) {
					s.srv.state.slowlog.clear()
					s.ok()
				}},
			},
		},
		latencyCommand(),
	}
}

func runSlowlogGet(s *session, args [][]byte) {
	count := int64(10)
	if len(args) > 3 {
		s.fail(errSyntax)
		return
	}
	if len(args) == 3 {
		var ok bool
		if count, ok = parseInt(args[2]); !ok || count < -1 {
			s.fail(replyError("ERR count should be greater than or equal to -1"))
			return
		}
	}
	if count < 0 {
		count = maxSlowlogLen
	}
	entries := s.srv.state.slowlog.newest(int(min(count, maxSlowlogLen)))
	s.array(len(entries))
	for _, e := range entries {
		s.array(6)
		s.int(e.id)
		s.int(e.at.Unix())
		s.int(e.took.Microseconds())
		s.strings(e.args)
		s.bulk(e.addr)
		s.bulk(e.name)
	}
}

// latencyCommand answers truthfully that no latency events are recorded.
func latencyCommand() *command {
	empty := func(s *session, _ [][]byte) { s.array(0) }
	return &command{
		name: "LATENCY", arity: -2, group: groupServer, flags: "admin loading stale",
		summary: "Latency events: none are recorded, see SLOWLOG",
		subs: []*command{
			{name: "LATEST", arity: 2, summary: "Always empty", run: empty},
			{name: "HISTORY", arity: 3, syntax: "event", summary: "Always empty", run: empty},
			{name: "HISTOGRAM", arity: -2, syntax: "[command ...]", summary: "Always empty", run: func(s *session, _ [][]byte) { s.mapOf(0) }},
			{name: "RESET", arity: -2, syntax: "[event ...]", summary: "Always 0: there is nothing to reset", run: func(s *session, _ [][]byte) { s.int(0) }},
			{name: "DOCTOR", arity: 2, summary: "Says where to look instead", run: func(s *session, _ [][]byte) {
				s.verbatim("weir records no latency events. Slow commands are in SLOWLOG GET, times per command in INFO commandstats.\n")
			}},
		},
	}
}
