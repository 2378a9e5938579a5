package chaos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

const (
	// readEvents bounds the events of one reply.
	readEvents = "1000"
	// eventsBlock is how long a reader waits for an event, in milliseconds.
	eventsBlock = "100"
)

// errEventsLost reports that a node has fewer events than a reader saw.
var errEventsLost = errors.New("events are lost")

// eventReader reads the log of a group by cursor, at one node after another.
type eventReader struct {
	*Client
	log    *ledger.EventLog
	stream bool // it reads by XREAD
	group  int
	key    string // of the stream
	after  uint64
	atMs   int64 // of the event with the cursor after; 0: unknown
	served int   // index of the node that answered last
}

func (w *Workload) eventReader(c *Client, group int, stream bool) *eventReader {
	r := &eventReader{Client: c, log: &w.Spending.logs[group], group: group, stream: stream, key: "weir:events"}
	if len(w.Spending.logs) > 1 {
		r.key = fmt.Sprint(r.key, ":", group)
	}
	return r
}

// follow reads until ctx is over. It goes on at another node now and then.
func (w *Workload) follow(ctx context.Context, r *eventReader) {
	for r.pause(ctx, thinkTime) {
		args := []string{"RL.EVENTS", "AFTER", r.place(), "COUNT", readEvents, "BLOCK", eventsBlock + "ms", "GROUP",
			strconv.Itoa(r.group)}
		if r.stream {
			args = []string{"XREAD", "COUNT", readEvents, "BLOCK", eventsBlock, "STREAMS", r.key, r.place()}
		}
		a := r.Call(args...)
		w.addEvents(r, args, a)
		if a.Outcome == Answered && r.at != r.served {
			r.served = r.at
			w.Spending.moved()
		}
		if r.rng.IntN(8) == 0 {
			r.Close()
			r.at = r.rng.IntN(len(r.addrs))
		}
	}
}

// place returns the id of the last event that the reader saw.
func (r *eventReader) place() string { return fmt.Sprintf("%d-%d", r.atMs, r.after) }

// addEvents adds the events of an answer to the log, and reports whether there were any.
func (w *Workload) addEvents(r *eventReader, args []string, a Answer) bool {
	list, ok := eventsIn(a.Reply, r.stream)
	switch {
	case a.Outcome == Refused, a.Outcome == Answered && !ok:
		w.Violations.Add(r.key, fmt.Errorf("%w: %v to %v", ErrBadReply, a.Reply, args))
		return false
	case a.Outcome != Answered, len(list) == 0:
		return false
	}
	w.Violations.Add(r.key, r.log.Add(fmt.Sprint("a reader at ", r.addrs[r.at]), r.after, list))
	last := &list[len(list)-1]
	r.after, r.atMs = last.Cursor, last.AtMs
	return true
}

// eventsIn parses a reply to RL.EVENTS, or to XREAD.
func eventsIn(reply any, stream bool) (list []ledger.Event, ok bool) {
	items, ok := reply.([]any)
	if stream && ok { // of one stream, after its key
		one, _ := items[0].([]any)
		items, ok = one[1].([]any)
	}
	for _, item := range items {
		fields, cursor, atMs := item.([]any), int64(0), int64(0)
		if stream {
			_, err := fmt.Sscanf(fmt.Sprint(fields[0]), "%d-%d", &atMs, &cursor)
			ok = ok && err == nil
			fields = fields[1].([]any)
		}
		e := ledger.Event{Cursor: uint64(cursor), AtMs: atMs}
		for i := 0; i+1 < len(fields); i += 2 {
			setField(&e, fmt.Sprint(fields[i]), fmt.Sprint(fields[i+1]))
		}
		list = append(list, e)
	}
	return list, ok || reply == nil || len(items) == 0
}

func setField(e *ledger.Event, name, value string) {
	n, _ := strconv.ParseInt(value, 10, 64)
	switch name {
	case "cursor":
		e.Cursor = uint64(n)
	case "time_ms":
		e.AtMs = n
	case "kind":
		e.Kind = value
	case "policy":
		e.Pair.Policy = value
	case "key":
		e.Pair.Key = value
	case "id":
		e.ID = value
	case "share":
		e.Share = n
	case "amount":
		e.Amount = n
	case "used":
		e.Used = n
	case "limit":
		e.Limit = n
	}
}

// settleSpending reads all events that each node has, after all faults have ended. It also reads the limits of
// operations with an unknown outcome.
func (w *Workload) settleSpending(c *Client) {
	for _, taking := range w.Spending.takings {
		if !taking.Unknown || taking.Pair.Policy == renewedPolicy {
			continue
		}
		args := append(pairArgs([]string{"RL.CHECK"}, []ledger.Pair{taking.Pair}), "COST", "0")
		if a := w.insist(c, taking.Pair.Policy, args); a.Outcome == Answered {
			w.Spending.takings = append(w.Spending.takings,
				ledger.Taking{Pair: taking.Pair, Used: spentMax - a.ints()[1]})
		}
	}
	for group := range w.Spending.logs {
		var ends []uint64
		for _, addr := range w.addrs {
			one := *c
			one.conn, one.addrs, one.at = nil, []string{addr}, 0
			ends = append(ends, w.readAll(w.eventReader(&one, group, false)))
			one.Close()
		}
		for i, end := range ends {
			if last := w.Spending.logs[group].Last(); end != last {
				w.Violations.Add("events",
					fmt.Errorf("%w: %s ends with cursor %d of %d", errEventsLost, w.addrs[i], end, last))
			}
		}
	}
}

// insist sends a command that changes nothing until it is answered.
func (w *Workload) insist(c *Client, what string, args []string) (a Answer) {
	if poll(context.Background(), persistFor, func() bool {
		a = c.Call(args...)
		return a.Outcome == Answered
	}) != nil {
		w.Violations.Add(what, fmt.Errorf("%w: %v", errUnsettled, strings.Join(args, " ")))
	}
	return a
}

// readAll reads all events of one node, and returns the last cursor.
func (w *Workload) readAll(r *eventReader) uint64 {
	args := []string{"RL.EVENTS", "COUNT", readEvents, "GROUP", strconv.Itoa(r.group)}
	oldest := w.insist(r.Client, r.key, args)
	if list, _ := eventsIn(oldest.Reply, false); len(list) > 0 {
		r.after = list[0].Cursor - 1 // the log may have dropped older ones
	}
	for more := true; more; {
		next := append(slices.Clone(args), "AFTER", r.place())
		more = w.addEvents(r, next, w.insist(r.Client, r.key, next))
	}
	return r.after
}

// judgeSpending judges the events that the readers saw.
func (w *Workload) judgeSpending() {
	var all []ledger.Event
	for group := range w.Spending.logs {
		list, err := w.Spending.logs[group].Events()
		w.Violations.Add(fmt.Sprint("events of group ", group), err)
		all = append(all, list...)
	}
	tally, err := ledger.Told(spentTerms(), w.Spending.takings, w.Spending.settlings, all)
	w.Spending.counts.Tally = tally
	w.Violations.Add("events", err)
}
