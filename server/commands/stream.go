package commands

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// The id of an event in a stream is its time in milliseconds, a hyphen and its cursor. Times and cursors ascend
// together, so ids do. The cursor alone says where a reader goes on.

func streamCommands() []*command {
	return []*command{
		{
			name: "XREAD", arity: -4, syntax: "[COUNT n] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]",
			group: groupLook, flags: "readonly blocking no_multi noscript", cost: "O(n) in the events returned",
			summary: "Read the log of events as a stream, with a stock client",
			details: "The id of an event is `<time_ms>-<cursor>`, and its fields are those of `RL.EVENTS`. The key is " +
				"`weir:events`. In a cluster with several [Raft " +
				"groups](clustering.md#several-raft-groups) each group has its own: `weir:events:0` and so on. " +
				"`0` and `0-0` begin with the oldest event; its id ends in `-1` unless older ones are gone. `$` begins " +
				"with the next event. For another id that the log does not have the answer is `EVENTSGONE`; " +
				"`0-<cursor>` compares no time. Other errors are as of `RL.EVENTS`. weir has no `XADD`, and no groups " +
				"of consumers.",
			params: []param{{"COUNT n", "at most so many events of each stream, 1 to 10000; 1000 unless given"},
				{"BLOCK milliseconds", "how long to wait for an event; 0, and anything above an hour: one hour"},
				{"key", "`weir:events`, or of a group"}, {"id", "only events after this one"}},
			reply: "As Redis: for each stream with newer events its key and they, else nothing.",
			read: reading{runXRead, func(s *Session, args [][]byte, to *scope) bool {
				a, err := parseXRead(args[1:])
				return err == nil && s.addEventsGroups(to, a.keys...)
			}},
		},
		{
			name: "XRANGE", arity: -4, syntax: "key start end [COUNT n]", group: groupLook, flags: "readonly noscript",
			cost: "O(n) in the events returned", summary: "Read a range of the log of events, with a stock client",
			details: "`-` and `+` are the oldest and the newest event. An id without a hyphen is a time. A parenthesis " +
				"before an id excludes it. An excluded `start` is checked as the id of `XREAD`.",
			params: []param{{"key", "as of `XREAD`"},
				{"start, end", "the first and the last id"},
				{"COUNT n", "at most so many events, 1 to 10000; needed if the log has more than 10000"}},
			reply: "An array of events: each an id and an array of fields and values.",
			keys:  oneKey, read: ofEventsKey(runXRange),
		},
		{
			name: "XLEN", arity: 2, syntax: "key", group: groupLook, flags: "readonly fast noscript", keys: oneKey,
			summary: "How many events the log has",
			params:  []param{{"key", "as of `XREAD`"}}, reply: "Their number.",
			read: ofEventsKey(runXLen),
		},
	}
}

// ofEventsKey reads the log of events that the first argument names.
func ofEventsKey(run func(*Session, limiter.View, [][]byte)) reading {
	return reading{run, func(s *Session, args [][]byte, to *scope) bool { return s.addEventsGroups(to, args[1]) }}
}

// addEventsGroups adds the groups whose logs the keys name. It returns false if one of them names none.
func (s *Session) addEventsGroups(to *scope, keys ...[]byte) bool {
	for _, key := range keys {
		group, err := s.eventsGroup(key)
		if err != nil {
			return false
		}
		to.add(group)
	}
	return true
}

// eventsGroup returns the group whose log a key names. With several groups a key without a number names none, because
// a reader of one log must not believe that it has the events of all.
func (s *Session) eventsGroup(key []byte) (group int, err error) {
	groups := s.groups()
	number, numbered := bytes.CutPrefix(key, []byte(eventsKey+":"))
	n, ok := limits.Int(number)
	if !numbered {
		n, ok = 0, string(key) == eventsKey && groups == 1
	}
	if !ok || n < 0 || n >= int64(groups) {
		accepted := fmt.Sprintf("must be %s:0 to %s:%d, the logs of the Raft groups, or %s if there is one", eventsKey,
			eventsKey, groups-1, eventsKey)
		return 0, lacks(service.RefusesCommand, limits.Bad("key", accepted, key), "the key "+accepted+"; "+keepsLimits)
	}
	return int(n), s.ofGroup(int(n))
}

// xreadArgs are the arguments of XREAD.
type xreadArgs struct {
	count int
	block time.Duration
	keys  [][]byte
	ids   [][]byte
}

const maxDefaultXRead = 1000

func parseXRead(args [][]byte) (a xreadArgs, err error) {
	a.count = maxDefaultXRead
	for len(args) > 1 && !limits.Is(args[0], "STREAMS") {
		var n int64
		switch {
		case limits.Is(args[0], "COUNT"):
			n, err = limits.Units("COUNT", args[1], 1, maxEvents)
			a.count = int(n)
		case limits.Is(args[0], "BLOCK"):
			n, err = limits.Units("BLOCK", args[1], 0, engine.MaxUnits)
			if a.block = time.Duration(min(n, maxTimeout.Milliseconds())) * time.Millisecond; n == 0 {
				a.block = maxTimeout
			}
		default:
			err = limits.Bad("option", "must be COUNT n, BLOCK milliseconds or STREAMS", args[0])
		}
		if err != nil {
			return a, err
		}
		args = args[2:]
	}
	if n := len(args) - 1; n < 2 || n%2 != 0 || !limits.Is(args[0], "STREAMS") {
		return a, resp.Error("ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', or '$' must be " +
			"specified.")
	}
	half := (len(args) - 1) / 2
	a.keys, a.ids = args[1:1+half], args[1+half:]
	return a, nil
}

// parseID parses the id of an event: a time with a cursor, or a time alone.
func parseID(b []byte) (ms, cursor int64, exact bool, err error) {
	first, second, exact := bytes.Cut(b, []byte("-"))
	ms, ok := limits.Int(first)
	if exact && ok {
		cursor, ok = limits.Int(second)
	}
	if !ok || ms < 0 || cursor < 0 {
		return 0, 0, false, limits.Bad("id", "must be a time in milliseconds, a hyphen and a cursor, like "+
			"1767225600000-42", b)
	}
	return ms, cursor, exact, nil
}

// startAfter sets where a reader of a stream begins.
func startAfter(v limiter.View, l *eventLog, id []byte) error {
	if string(id) == "$" {
		_, at, _ := v.Events(l.group, engine.MaxUnits, 0)
		l.after, l.strict = at.Last, true
		return nil
	}
	ms, cursor, _, err := parseID(id)
	switch {
	case err != nil:
		return err
	case cursor > 0:
		l.after, l.atMs, l.strict = uint64(cursor), ms, true
	case ms > 0:
		l.after = v.EventsBefore(l.group, ms)
	}
	return nil
}

func runXRead(s *Session, v limiter.View, args [][]byte) {
	a, err := parseXRead(args[1:])
	logs := make([]eventLog, len(a.keys))
	for i := range logs {
		if err == nil {
			logs[i].key = a.keys[i]
			logs[i].group, err = s.eventsGroup(a.keys[i])
		}
		if err == nil {
			err = startAfter(v, &logs[i], a.ids[i])
		}
	}
	if err == nil {
		err = s.mayReadEvents()
	}
	if !s.guarded(err) {
		return
	}
	most := min(a.count, max(maxEvents/max(len(logs), 1), 1)) // a log may be named many times
	lists := make([][]engine.Event, len(logs))
	found := s.awaitEvents(a.block, func() (any bool, wake <-chan struct{}, err error) {
		for i := range logs {
			var next <-chan struct{}
			if lists[i], next, err = s.events(v, &logs[i], most); err != nil {
				return false, nil, err
			}
			if wake == nil { // the events of other groups are found by the poll
				wake = next
			}
			any = any || len(lists[i]) > 0
		}
		return any, wake, nil
	})
	switch {
	case s.failed || s.Closing:
	case !found:
		s.NullArray()
	default:
		writeStreams(s, logs, lists)
	}
}

func writeStreams(s *Session, logs []eventLog, lists [][]engine.Event) {
	n := 0
	for i := range lists {
		n += int(oneIf(len(lists[i]) > 0))
	}
	s.PairList(n)
	for i, list := range lists {
		if len(list) > 0 {
			s.BeginPair()
			s.BulkBytes(logs[i].key)
			writeEntries(s, list)
		}
	}
}

func writeEntries(s *Session, list []engine.Event) {
	s.Array(len(list))
	for i := range list {
		e := &list[i]
		s.Array(2)
		s.Bulk(strconv.FormatInt(e.AtMs, 10) + "-" + strconv.FormatUint(e.Cursor, 10))
		s.Array(2 * (eventFields + databaseFields(e)))
		for _, f := range [eventFields][2]string{
			{"kind", e.Kind.String()}, {"policy", e.Policy}, {"key", e.Key}, {"id", e.ID},
			{"share", strconv.FormatInt(e.Share, 10)}, {"amount", strconv.FormatInt(e.Amount, 10)},
			{"used", strconv.FormatInt(e.Used, 10)}, {"limit", strconv.FormatInt(e.Limit, 10)},
		} {
			s.Pair(f[0], f[1])
		}
		if e.Database > 0 {
			s.Bulk("db")
			s.Bulk(strconv.Itoa(e.Database))
		}
	}
}

func runXRange(s *Session, v limiter.View, args [][]byte) {
	l := eventLog{key: args[1]}
	var err error
	if l.group, err = s.eventsGroup(args[1]); err == nil {
		err = s.mayReadEvents()
	}
	n := maxEvents + 1 // one more shows that there are too many
	switch {
	case err != nil || len(args) == 4:
	case len(args) == 6 && limits.Is(args[4], "COUNT"):
		var count int64
		count, err = limits.Units("COUNT", args[5], 1, maxEvents)
		n = int(count)
	default:
		err = limits.Bad("option", "must be COUNT n, at the end", args[4])
	}
	last := uint64(engine.MaxUnits)
	if err == nil {
		last, err = readRange(v, &l, args[2], args[3])
	}
	if !s.guarded(err) {
		return
	}
	list, _, err := s.events(v, &l, n)
	for len(list) > 0 && list[len(list)-1].Cursor > last {
		list = list[:len(list)-1]
	}
	if err == nil && len(list) > maxEvents {
		err = limits.Error("COUNT must be given, from 1 to 10000, because the range has more events than that")
	}
	if s.guarded(err) {
		writeEntries(s, list)
	}
}

// readRange sets where a range begins, and returns its last cursor.
func readRange(v limiter.View, l *eventLog, start, end []byte) (last uint64, err error) {
	if err = rangeFrom(v, l, start); err == nil {
		last, err = rangeTo(v, l.group, end)
	}
	return last, err
}

func rangeFrom(v limiter.View, l *eventLog, id []byte) error {
	id, excluded := bytes.CutPrefix(id, []byte("("))
	if string(id) == "-" && !excluded {
		return nil
	}
	ms, cursor, exact, err := parseID(id)
	switch {
	case err != nil:
	case exact && cursor > 0:
		l.after = uint64(cursor) - uint64(1-oneIf(excluded))
		if excluded { // the place of a reader that pages
			l.atMs = ms
		}
		_, at, _ := v.Events(l.group, engine.MaxUnits, 0)
		l.strict = l.after <= at.Last || l.atMs > 0 // another range behind the newest event is empty
	case ms > 0:
		l.after = v.EventsBefore(l.group, ms+int64(oneIf(excluded && !exact)))
	}
	return err
}

func rangeTo(v limiter.View, group int, id []byte) (uint64, error) {
	id, excluded := bytes.CutPrefix(id, []byte("("))
	if string(id) == "+" && !excluded {
		return engine.MaxUnits, nil
	}
	ms, cursor, exact, err := parseID(id)
	switch {
	case err != nil:
		return 0, err
	case exact:
		return uint64(cursor) - min(uint64(cursor), uint64(oneIf(excluded))), nil
	}
	return v.EventsBefore(group, ms+int64(1-oneIf(excluded))), nil
}

func runXLen(s *Session, v limiter.View, args [][]byte) {
	group, err := s.eventsGroup(args[1])
	if err == nil {
		err = s.mayReadEvents()
	}
	if !s.guarded(err) {
		return
	}
	_, at, _ := v.Events(group, engine.MaxUnits, 0)
	s.Int(int64(at.Last + 1 - at.First))
}
