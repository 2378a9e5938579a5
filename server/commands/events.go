package commands

import (
	"fmt"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// Each Raft group has a log of events. RL.EVENTS reads one of them by cursors, and XREAD and XRANGE (stream.go) read
// the same log as a stream of Redis. A reader that has missed events gets an error, and never fewer events.

const (
	// defaultEvents is COUNT of RL.EVENTS unless it is given.
	defaultEvents = 100
	// maxEvents bounds the events of one answer, which then has at most some megabytes.
	maxEvents = 10_000
	// eventsPoll is how long a waiting reader relies on being woken. A node that replaces its state by an image does
	// not wake the readers of the old state.
	eventsPoll = time.Second
)

func rlEventsCommand() *command {
	return &command{
		name: "RL.EVENTS", arity: -1, syntax: "[AFTER cursor] [COUNT n] [BLOCK duration] [GROUP n]", group: groupLook,
		flags: "readonly blocking no_multi noscript", cost: "O(n) in the events returned",
		summary: "Read the log of events: thresholds, settled and expired holds, lockouts",
		details: "[Events](policies.md#events) says which events there are. Every node has the same events with the " +
			"same cursors, so a reader may go on at any node. At most 1000 requests wait on a node, the next one " +
			"gets `OVERLOADED`. A node that stops or has no leader answers `TRYAGAIN` or `CLUSTERDOWN`.\n\n" +
			"The log keeps the newest `--events-memory` bytes. If events after `cursor` are gone, or it is of " +
			"another log, the error `EVENTSGONE` says so, and where to go on. A user without permission for all " +
			"keys needs permission for the key `weir:events`, and then reads events of all keys.",
		params: []param{
			{"AFTER cursor",
				"only events after this one; 0: from the first event ever. Unless given, from the oldest. With its " +
					"time, as `<time_ms>-<cursor>`, a cursor of another log is found out"},
			{"COUNT n", "at most so many events, 1 to 10000; 100 unless given"},
			{"BLOCK duration", "how long to wait for an event, at most 1h"},
			{"GROUP n",
				"the [Raft group](clustering.md#several-raft-groups), from 0, whose log is read; 0 unless given"},
		},
		reply: "An array with a map for each event, the oldest first: `cursor`, `time_ms` (Unix milliseconds), `kind` " +
			"(`threshold`, `settled`, `expired` or `lockout`), `policy`, `key`, `id` (of the hold, or the `ID` of the " +
			"decision), `share`, `amount`, `used` and `limit`. The share is the threshold in percent. The amount is the units of the " +
			"decision, the cost of the hold, or the strikes. An event of another database than 0 also has `db`.",
		shown: []example{
			{"RL.POLICY SET budget LIMIT FIXED FOREVER 1000 NOTIFY 80%", "1", ""},
			{"RL.CHECK budget acme COST 850", "1 150 0 -1 1000 budget", ""},
			{"RL.EVENTS AFTER 0", "cursor 1 time_ms * kind threshold policy budget key acme id  share 80 amount 850 " +
				"used 850 limit 1000", ""},
		},
		read: reading{runEvents, func(s *Session, args [][]byte, to *scope) bool {
			l, _, _, err := s.eventsArgs(args[1:])
			to.add(l.group)
			return err == nil
		}},
	}
}

func eventCommands() []*command { return append([]*command{rlEventsCommand()}, streamCommands()...) }

// eventsKey is the key of the log of events for XREAD, XRANGE and permissions. With several groups the key of a group
// has a colon and its number behind it.
const eventsKey = "weir:events"

// mayReadEvents returns an error if the user may not read events.
func (s *Session) mayReadEvents() error {
	if s.limits != nil && !s.limits.MayUse([]byte(eventsKey)) {
		return s.srv.Refused(service.ErrNoKey)
	}
	return nil
}

// eventLog is the place of a reader in the log of a group.
type eventLog struct {
	key    []byte // of a stream; nil for RL.EVENTS
	group  int
	after  uint64
	atMs   int64 // time of the event with the cursor after; 0: the reader did not give it
	strict bool  // the reader has seen the events up to after
}

// events reads a log. It returns an error if the reader has missed events, or has its place from another log.
func (s *Session) events(v limiter.View, l *eventLog, n int) (list []engine.Event, wake <-chan struct{}, err error) {
	from, most := l.after, n
	if l.atMs > 0 { // the list begins with the event at the place, if the log has it
		from, most = l.after-1, n+1
	}
	list, at, wake := v.Events(l.group, from, most)
	if err = s.reads.Failed(); err != nil { // ends a wait
		return nil, nil, err
	}
	if l.strict {
		err = eventsGone(l, list, at, s.reads.Stale)
	}
	if len(list) > 0 && list[0].Cursor == l.after {
		list = list[1:]
	}
	list = list[:min(n, len(list))]
	if ended := s.ofGroup(l.group); err != nil && ended != nil { // such a group has no events here
		err = ended
	}
	return list, wake, err
}

// eventsGone returns the error for a reader that has missed events, or has its place from another log. list has the
// events from the place on. A stale read may precede what the reader has seen.
func eventsGone(l *eventLog, list []engine.Event, at engine.EventsPosition, stale bool) error {
	on, place := fmt.Sprintf("AFTER %d", at.Dropped()), fmt.Sprint(l.after)
	if l.key != nil {
		on = fmt.Sprintf("the id 0-%d", at.Dropped())
	}
	if l.atMs > 0 {
		place = fmt.Sprintf("%d-%d", l.atMs, l.after)
	}
	switch {
	case l.after > at.Last && !stale, l.elsewhere(list):
		return resp.Error(fmt.Sprintf("EVENTSGONE the log has no event %s, because this cursor comes from another "+
			"log, or the log was restored: go on with %s, before its oldest event, and skip the events whose time "+
			"and cursor you have", place, on))
	case l.after < at.Dropped():
		return resp.Error(fmt.Sprintf("EVENTSGONE events after cursor %d are gone, because --events-memory bounds the "+
			"log: go on with %s, which misses %d events", l.after, on, at.Dropped()-l.after))
	}
	return nil
}

// elsewhere reports whether the place is of another log than the events from it on. Times ascend with cursors.
func (l *eventLog) elsewhere(list []engine.Event) bool {
	if l.atMs == 0 || len(list) == 0 {
		return false
	}
	e := &list[0]
	return e.Cursor == l.after && e.AtMs != l.atMs || e.Cursor > l.after && e.AtMs < l.atMs
}

// groups returns the number of Raft groups.
func (s *Session) groups() int {
	if s.srv.Replica == nil {
		return 1
	}
	return len(s.srv.Replica.Topology().Groups)
}

// ofGroup returns an error unless the node has the group.
func (s *Session) ofGroup(group int) error {
	if s.srv.Replica == nil {
		return nil
	}
	if why := s.srv.Replica.Topology().Groups[group].Ended; why != "" {
		return resp.Error("TRYAGAIN this node has no state of group " + fmt.Sprint(group) + ": " + why)
	}
	return nil
}

// awaitEvents calls read until it has events, fails, or the time is up. read answers with a channel that is closed when
// there may be more events. awaitEvents reports whether read had events, and answers the error of read.
func (s *Session) awaitEvents(block time.Duration, read func() (found bool, wake <-chan struct{}, err error)) bool {
	found, wake, err := read()
	if found || err != nil || block == 0 {
		return s.guarded(err) && found
	}
	if !s.guarded(s.srv.EventWaits.Join()) {
		return false
	}
	defer s.srv.EventWaits.Leave()
	start := time.Now()
	end := start.Add(block)
	s.client.Await(func(gone <-chan struct{}) {
		for !found && err == nil {
			timer := time.NewTimer(min(time.Until(end), eventsPoll))
			select {
			case <-gone:
				s.Closing = true
			case <-s.srv.Stop:
				err = errStopping
			case <-wake:
			case <-timer.C:
			}
			timer.Stop()
			if s.Closing || err != nil {
				return
			}
			if found, wake, err = read(); !found && !time.Now().Before(end) {
				return
			}
		}
	})
	s.heldFor += time.Since(start)
	s.answerAt = s.Len() // the earlier answers may have been sent
	return !s.Closing && s.guarded(err) && found
}

func runEvents(s *Session, v limiter.View, args [][]byte) {
	l, n, block, err := s.eventsArgs(args[1:])
	if err == nil {
		err = s.mayReadEvents()
	}
	if err == nil {
		err = s.ofGroup(l.group)
	}
	if !s.guarded(err) {
		return
	}
	var list []engine.Event
	s.awaitEvents(block, func() (bool, <-chan struct{}, error) {
		var wake <-chan struct{}
		list, wake, err = s.events(v, &l, n)
		return len(list) > 0, wake, err
	})
	if s.failed || s.Closing {
		return
	}
	s.Array(len(list))
	for i := range list {
		writeEvent(s, &list[i])
	}
}

// eventFields is how many fields an event has besides its cursor and its time.
const eventFields = 8

func writeEvent(s *Session, e *engine.Event) {
	s.Map(2 + eventFields + databaseFields(e))
	s.PairInt("cursor", int64(e.Cursor))
	s.PairInt("time_ms", e.AtMs)
	s.Pair("kind", e.Kind.String())
	s.Pair("policy", e.Policy)
	s.Pair("key", e.Key)
	s.Pair("id", e.ID)
	s.PairInt("share", e.Share)
	s.PairInt("amount", e.Amount)
	s.PairInt("used", e.Used)
	s.PairInt("limit", e.Limit)
	if e.Database > 0 {
		s.PairInt("db", int64(e.Database))
	}
}

// databaseFields returns how many fields name the database of an event: none for database 0.
func databaseFields(e *engine.Event) int { return min(e.Database, 1) }

// eventsArgs parses the arguments of RL.EVENTS.
func (s *Session) eventsArgs(args [][]byte) (l eventLog, n int, block time.Duration, err error) {
	n = defaultEvents
	seen := map[string]bool{}
	for ; len(args) > 0 && err == nil; args = args[2:] {
		word, value := "", []byte(nil)
		for _, known := range []string{"AFTER", "COUNT", "BLOCK", "GROUP"} {
			if limits.Is(args[0], known) {
				word = known
			}
		}
		switch {
		case word == "":
			return l, 0, 0, limits.Bad("option", "must be AFTER cursor, COUNT n, BLOCK duration or GROUP n", args[0])
		case len(args) < 2:
			return l, 0, 0, limits.Error(word + " needs a value")
		case seen[word]:
			return l, 0, 0, limits.Error(word + " is given twice")
		}
		seen[word], value = true, args[1]
		var number int64
		switch word {
		case "AFTER":
			l.after, l.atMs, err = parsePlace(value)
			l.strict = true
		case "COUNT":
			number, err = limits.Units(word, value, 1, maxEvents)
			n = int(number)
		case "BLOCK":
			if number, err = limits.Duration(word, value); err == nil && number > int64(maxTimeout) {
				err = limits.Bad(word, "must be at most 1h", value)
			}
			block = time.Duration(number)
		case "GROUP":
			number, err = limits.Units(word, value, 0, int64(s.groups()-1))
			l.group = int(number)
		}
	}
	return l, n, block, err
}

// parsePlace parses AFTER: a cursor, or the id of an event. Without an id atMs is 0.
func parsePlace(b []byte) (after uint64, atMs int64, err error) {
	ms, cursor, exact, err := parseID(b)
	if !exact {
		ms, cursor = 0, ms
	}
	if err != nil || cursor > engine.MaxUnits || cursor == 0 && ms > 0 {
		err = limits.Bad("AFTER", "must be a cursor from 0 to 9007199254740992, or the id of an event, like "+
			"1767225600000-42", b)
	}
	return uint64(cursor), ms, err
}
