package commands

import (
	"math"
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

const (
	// maxKeysReply bounds the reply of KEYS. SCAN has no such bound.
	maxKeysReply = 10_000
	// defaultScanCount is Redis' own. maxScanCount bounds one step of SCAN.
	defaultScanCount = 10
	maxScanCount     = 10_000
	// keysStep is how many keys KEYS visits in one step.
	keysStep = 1000
)

func keyCommands() []*command {
	commands := []*command{
		{name: "KEYS", arity: 2, syntax: "pattern", summary: "The keys that match a pattern",
			details: "Answers an error when more than 10000 keys match: then use SCAN.",
			cost:    "O(n) in the keys of the server", flags: "readonly", read: ownState(runKeys), bulky: true},
		{name: "SCAN", arity: -2, syntax: "cursor [MATCH pattern] [COUNT n] [TYPE algorithm]",
			summary: "Walk through the keys", cost: "O(n) in the keys visited",
			reply: "The cursor to go on with, `0` at the end, and some keys. A key that is there all the time is " +
				"seen at least once. A cursor means the same on every node of a cluster, after a restart, and after " +
				"a failover.",
			flags: "readonly", read: ownState(runScan), bulky: true},
		{name: "TTL", arity: 2, syntax: "key", summary: "Seconds until the limiter is idle",
			reply: "Rounded up; -1: never by itself, -2: it is idle.", flags: "readonly fast", keys: oneKey,
			read: keyState(func(s *Session, v limiter.View, args [][]byte) { answerTTL(s, v, args[1], 1000) })},
		{name: "PTTL", arity: 2, syntax: "key", summary: "Milliseconds until the limiter is idle",
			reply: "Rounded up; -1: never by itself, -2: it is idle.", flags: "readonly fast", keys: oneKey,
			read: keyState(func(s *Session, v limiter.View, args [][]byte) { answerTTL(s, v, args[1], 1) })},
		{name: "TYPE", arity: 2, syntax: "key",
			summary: "The algorithm of a limiter; string, hash or zset for state of scripts and clients; or none",
			flags:   "readonly fast", keys: oneKey, read: keyState(runType)},
		{name: "EXISTS", arity: -2, syntax: "key [key ...]", summary: "How many of the keys are not idle",
			flags: "readonly fast", keys: keySpec{1, -1, 1}, read: keyState(runExists)},
		{name: "RANDOMKEY", arity: 1, summary: "Some key that is not idle", flags: "readonly",
			bulky: true, read: wholeState(runRandomKey)},
		{name: "DBSIZE", arity: 1, summary: "The number of keys that are not idle", flags: "readonly fast",
			read: ownState(runSize)},
		{name: "MEMORY", arity: -2, summary: "Memory of keys and of the server", flags: "readonly", subs: []*command{
			{name: "USAGE", arity: -3, syntax: "key [SAMPLES n]",
				summary: "Bytes a limiter takes, with its share of the index", flags: "readonly",
				keys: keySpec{2, 2, 1}, read: keyState(runMemoryUsage)},
			{name: "STATS", arity: 2, summary: "Bytes of the server and of its limiters", run: runMemoryStats},
			{name: "DOCTOR", arity: 2, summary: "Names the command to use instead", run: func(s *Session, _ [][]byte) {
				s.Verbatim("Limiters that are idle take no memory. INFO memory shows what the others take, and " +
					"the bound.\n")
			}},
		}},
		{name: "OBJECT", arity: -2, summary: "How a limiter is stored", flags: "readonly", subs: []*command{
			{name: "ENCODING", arity: 3, syntax: "key", summary: "Always `packed`: limiters are bytes in pages",
				flags: "readonly", keys: keySpec{2, 2, 1}, read: keyState(runEncoding)},
		}},
	}
	for _, cmd := range commands {
		cmd.group = groupLook
	}
	return commands
}

func answerTTL(s *Session, v limiter.View, key []byte, unitMs int64) {
	if s.hasBlacklist(v, key) {
		s.Int(-1)
		return
	}
	info, ok := inspectNamed(v, key)
	switch {
	case !ok:
		s.Int(-2)
	case info.IdleInMs < 0 || info.BlockedMs < 0:
		s.Int(-1)
	case unitMs == 1000 && info.Algorithm == engine.Scripted && info.BlockedMs == 0: // rounded as in Redis
		s.Int((info.IdleInMs + unitMs/2) / unitMs)
	default: // a key exists until its limiter is idle and its block is over
		s.Int((max(info.IdleInMs, info.BlockedMs) + unitMs - 1) / unitMs)
	}
}

func runType(s *Session, v limiter.View, args [][]byte) {
	if s.hasBlacklist(v, args[1]) {
		s.Simple("set")
		return
	}
	info, _ := inspectNamed(v, args[1])
	switch {
	case len(info.Hash) > 0:
		s.Simple("hash")
	case info.Members > 0:
		s.Simple("zset")
	case info.IsList:
		s.Simple("list")
	default:
		s.Simple(typeName(info.Algorithm))
	}
}

// typeName returns the answer of TYPE for most keys: string for values that scripts and clients keep.
func typeName(a engine.Algorithm) string {
	if a == engine.Scripted {
		return "string"
	}
	return a.String()
}

func runExists(s *Session, v limiter.View, args [][]byte) {
	n := int64(0)
	for _, key := range args[1:] {
		if _, ok := inspectNamed(v, key); ok || s.hasBlacklist(v, key) {
			n++
		}
	}
	s.Int(n)
}

func runRandomKey(s *Session, v limiter.View, _ [][]byte) {
	if key := v.RandomKey(); key != nil {
		shown, _ := shownName(v.Policies(), nil, key)
		s.BulkBytes(shown)
		return
	}
	s.Null()
}

func runMemoryUsage(s *Session, v limiter.View, args [][]byte) {
	if len(args) != 3 && (len(args) != 5 || !limits.Is(args[3], "SAMPLES")) {
		s.fail(arg.ErrSyntax)
		return
	}
	if len(args) == 5 {
		if _, err := limits.Units("SAMPLES", args[4], 0, math.MaxInt64); !s.guarded(err) {
			return
		}
	}
	if info, ok := inspectNamed(v, args[2]); ok {
		s.Int(int64(info.Bytes))
		return
	}
	s.Null()
}

func runMemoryStats(s *Session, _ [][]byte) {
	used, resident := service.ProcessMemory()
	stats := s.srv.Limiter.Stats()
	s.Map(4)
	s.PairInt("total.allocated", int64(used))
	s.PairInt("process.resident", int64(resident))
	s.PairInt("dataset.bytes", stats.MemoryBytes)
	s.PairInt("keys.count", stats.Keys)
}

func runEncoding(s *Session, v limiter.View, args [][]byte) {
	if _, ok := inspectNamed(v, args[2]); ok {
		s.Bulk("packed")
		return
	}
	s.Null()
}

// runFlushAll is FLUSHALL, and runFlushDatabase FLUSHDB.
func runFlushAll(s *Session, args [][]byte) { flush(s, args, s.srv.Limiter.Clear) }

func runFlushDatabase(s *Session, args [][]byte) {
	flush(s, args, func() error { return s.srv.Limiter.ClearDatabase(int(s.database)) })
}

func flush(s *Session, args [][]byte, clear func() error) {
	if len(args) > 2 || len(args) == 2 && !limits.Is(args[1], "ASYNC") && !limits.Is(args[1], "SYNC") {
		s.fail(arg.ErrSyntax)
		return
	}
	if s.guarded(clear()) {
		s.OK()
	}
}

func runKeys(s *Session, v limiter.View, args [][]byte) {
	filter := scanFilter{pattern: args[1]}
	found, err := keysLike(v, filter, own(s))
	if !s.guarded(err) {
		return
	}
	found.addSet(s, v, filter)
	writeNames(s.Reply, found.names())
}

// keysLike returns the names that a filter keeps, of the keys that own keeps (nil: all).
func keysLike(v limiter.View, filter scanFilter, own func(key []byte) bool) (found keyList, err error) {
	if len(filter.pattern) > maxPatternBytes {
		return found, errPatternLong
	}
	found = newKeyList(v, filter.pattern, filter.keep)
	found.own = own
	for cursor, more := uint64(0), true; more && found.len() <= maxKeysReply; more = cursor != 0 {
		cursor = v.Scan(cursor, keysStep, found.visit)
		found.sift()
	}
	if found.len() > maxKeysReply {
		err = errTooManyKeys
	}
	return found, err
}

// writeNames writes an array of names.
func writeNames(w resp.Reply, names [][]byte) {
	w.Array(len(names))
	for _, name := range names {
		w.BulkBytes(name)
	}
}

// keyList collects the names of keys. A scan holds a lock while it visits a key, and a pattern may take
// long to match. A visit therefore only copies the key.
type keyList struct {
	keep func(key []byte, a engine.Algorithm) bool
	own  func(key []byte) bool // which keys this node shows; nil: all
	set  *engine.Policies      // sift shows the names that the layouts of these policies make; nil: own names
	seen map[string]struct{}   // the names in the list that several limiters share
	list []byte                // the names, one after the other
	ends []int                 // of the names, in list

	text    []byte // the keys visited since the last sift
	visited []visitedKey
}

type visitedKey struct {
	end       int // in text
	algorithm engine.Algorithm
}

func (l *keyList) visit(key []byte, a engine.Algorithm) {
	if l.own != nil && !l.own(key) {
		return
	}
	l.text = append(l.text, key...)
	l.visited = append(l.visited, visitedKey{len(l.text), a})
}

// sift moves the visited keys that match into the list, by the names that users see.
func (l *keyList) sift() {
	from := 0
	var memory []byte
	for _, v := range l.visited {
		key, shared := l.text[from:v.end], false
		from = v.end
		if l.set != nil {
			key, shared = shownName(l.set, memory, key)
		}
		if l.len() <= maxKeysReply && l.keep(key, v.algorithm) && !(shared && l.twice(key)) {
			l.add(key)
		}
	}
	l.text, l.visited = l.text[:0], l.visited[:0]
}

func (l *keyList) add(name []byte) {
	l.list = append(l.list, name...)
	l.ends = append(l.ends, len(l.list))
}

func (l *keyList) len() int { return len(l.ends) }

// names returns the names of the list.
func (l *keyList) names() [][]byte {
	names, from := make([][]byte, len(l.ends)), 0
	for i, end := range l.ends {
		names[i], from = l.list[from:end:end], end
	}
	return names
}

// twice records a name that several limiters share, and reports whether it was there before.
func (l *keyList) twice(key []byte) bool {
	if _, there := l.seen[string(key)]; there {
		return true
	}
	if l.seen == nil {
		l.seen = make(map[string]struct{})
	}
	l.seen[string(key)] = struct{}{}
	return false
}

// addSet adds the key of the set of blocked addresses, if the node shows it and it passes the filter.
func (l *keyList) addSet(s *Session, v limiter.View, f scanFilter) {
	if set := shownSet(s, v, s.blacklist()); set != nil && f.accepts(set, "set") {
		l.add(set)
	}
}

// newKeyList returns a keyList of the keys that keep accepts. The list has the names that layouts make, unless the
// pattern begins with the reserved prefix.
func newKeyList(v limiter.View, pattern []byte, keep func(key []byte, a engine.Algorithm) bool) keyList {
	l := keyList{keep: keep}
	if set := v.Policies(); len(set.Layouts) > 0 && !engine.Reserved(pattern) {
		l.set = set
	}
	return l
}

func runScan(s *Session, v limiter.View, args [][]byte) {
	cursor, err := parseCursor("SCAN", args[1])
	if !s.guarded(err) {
		return
	}
	count, filter, err := scanOptions(args[2:])
	if !s.guarded(err) {
		return
	}
	found := newKeyList(v, filter.pattern, filter.keep)
	found.own = own(s)
	if cursor == 0 { // the set has no place in the order of the keys
		found.addSet(s, v, filter)
	}
	cursor = v.Scan(cursor, count, found.visit)
	found.sift()
	s.Array(2)
	s.Bulk(strconv.FormatUint(cursor, 10))
	writeNames(s.Reply, found.names())
}

func parseCursor(cmd string, b []byte) (uint64, error) {
	cursor, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil || cursor > math.MaxInt64 {
		return 0, resp.Error("ERR invalid cursor: cursor must be 0, or what " + cmd + " answered, not " + quote.Text(b))
	}
	return cursor, nil
}

// scanFilter is what a scan asks for. The zero value accepts every key.
type scanFilter struct {
	pattern []byte // nil: any key
	kind    string // empty: any
}

// keep reports whether the filter accepts the key of a limiter.
func (f *scanFilter) keep(key []byte, a engine.Algorithm) bool {
	return f.accepts(key, typeName(a)) || f.kind == a.String() && f.accepts(key, f.kind)
}

func (f *scanFilter) accepts(key []byte, kind string) bool {
	return (f.kind == "" || f.kind == kind) && (f.pattern == nil || engine.MatchGlob(f.pattern, key))
}

func scanOptions(args [][]byte) (count int, f scanFilter, err error) {
	count = defaultScanCount
	for ; len(args) > 0; args = args[2:] {
		switch {
		case len(args) < 2:
			return 0, f, arg.ErrSyntax
		case limits.Is(args[0], "MATCH"):
			if f.pattern = args[1]; len(f.pattern) > maxPatternBytes {
				return 0, f, errPatternLong
			}
		case limits.Is(args[0], "COUNT"):
			n, err := limits.Units("COUNT", args[1], 1, math.MaxInt64)
			if err != nil {
				return 0, f, err
			}
			count = int(min(n, maxScanCount))
		case limits.Is(args[0], "TYPE"):
			f.kind = lower(args[1])
		default:
			return 0, f, arg.ErrSyntax
		}
	}
	return count, f, nil
}
