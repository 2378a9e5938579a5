package commands

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/service"
)

// TestBadEventArguments checks that each bad argument is named with what is accepted.
func TestBadEventArguments(t *testing.T) {
	c := defaultClient(t)
	require.Equal(t, "1", c.say("RL.POLICY SET p LIMIT FIXED FOREVER 100 NOTIFY 10% 20%"))
	require.Equal(t, "1 50 0 -1 100 p", c.say("RL.CHECK p k COST 50"))
	for send, want := range map[string]string{
		"RL.EVENTS AFTER":                                                    "AFTER needs a value",
		"RL.EVENTS AFTER -1":                                                 "AFTER must be a cursor from 0 to 9007199254740992, or the id of an event",
		"RL.EVENTS AFTER 9007199254740993":                                   "AFTER must be a cursor from 0 to 9007199254740992",
		"RL.EVENTS AFTER 1-":                                                 "AFTER must be a cursor from 0 to 9007199254740992",
		"RL.EVENTS AFTER 1-0":                                                "AFTER must be a cursor from 0 to 9007199254740992",
		"RL.EVENTS COUNT 0":                                                  "COUNT must be a whole number from 1 to 10000, not '0'",
		"RL.EVENTS COUNT 10001":                                              "COUNT must be a whole number from 1 to 10000",
		"RL.EVENTS BLOCK 2h":                                                 "BLOCK must be at most 1h",
		"RL.EVENTS BLOCK soon":                                               "BLOCK must be",
		"RL.EVENTS GROUP 1":                                                  "GROUP must be a whole number from 0 to 0",
		"RL.EVENTS AFTER 1 AFTER 2":                                          "AFTER is given twice",
		"RL.EVENTS FROM 1":                                                   "option must be AFTER cursor, COUNT n, BLOCK duration or GROUP n",
		"RL.EVENTS AFTER 3":                                                  "EVENTSGONE the log has no event 3, because",
		"XREAD STREAMS weir:events 0-3":                                      "EVENTSGONE the log has no event 3, because",
		"XREAD STREAMS weir:events":                                          "wrong number of arguments",
		"XREAD STREAMS weir:events 0 0":                                      "Unbalanced 'xread' list of streams",
		"XREAD COUNT 0 STREAMS weir:events 0":                                "COUNT must be a whole number from 1 to 10000",
		"XREAD BLOCK -1 STREAMS weir:events 0":                               "BLOCK must be a whole number from 0",
		"XREAD GROUP g STREAMS weir:events 0":                                "option must be COUNT n, BLOCK milliseconds or STREAMS",
		"XREAD STREAMS weir:other 0":                                         "key must be weir:events:0 to weir:events:0, the logs of the Raft groups, or weir:events if",
		"XREAD STREAMS weir:events >":                                        "id must be a time in milliseconds, a hyphen and a cursor",
		"XREAD STREAMS weir:events 1-":                                       "id must be a time in milliseconds, a hyphen and a cursor",
		"XRANGE weir:events - x":                                             "id must be a time in milliseconds, a hyphen and a cursor",
		"XRANGE weir:events x +":                                             "id must be a time in milliseconds, a hyphen and a cursor",
		"XRANGE weir:events - + COUNT":                                       "option must be COUNT n",
		"XRANGE weir:events - + COUNT 0":                                     "COUNT must be a whole number from 1 to 10000",
		"XRANGE k - +":                                                       "key must be weir:events",
		"XLEN k":                                                             "key must be weir:events",
		"RL.POLICY SET q LIMIT FIXED 1m 5 NOTIFY":                            "NOTIFY must be 1 to 8 ascending thresholds",
		"RL.POLICY SET q LIMIT FIXED 1m 5 NOTIFY 0%":                         "NOTIFY must be 1 to 8 ascending thresholds",
		"RL.POLICY SET q LIMIT FIXED 1m 5 NOTIFY 101%":                       "NOTIFY must be 1 to 8 ascending thresholds",
		"RL.POLICY SET q LIMIT FIXED 1m 5 NOTIFY 9% 9%":                      "NOTIFY must be 1 to 8 ascending thresholds",
		"RL.POLICY SET q LIMIT FIXED DAY 5 NOTIFY 9% TZ UTC":                 "NOTIFY must be 1 to 8 ascending thresholds",
		"RL.POLICY SET q LIMIT TOKENBUCKET 1/s 5 NOTIFY 9%":                  "NOTIFY goes with FIXED only",
		"RL.POLICY SET q LIMIT SLIDING 1m 5 NOTIFY 9%":                       "NOTIFY goes with FIXED only",
		"RL.POLICY SET q LIMIT FIXED 1m 5 RECORD RECORD":                     "RECORD is given twice",
		"RL.POLICY SET q LIMIT FIXED 1m 5 NOTIFY 1% 2% 3% 4% 5% 6% 7% 8% 9%": "NOTIFY must be 1 to 8 ascending",
	} {
		require.Contains(t, c.say(send), want, send)
	}
	require.Equal(t, "2", c.say("XLEN weir:events"))
	require.Contains(t, c.say("RL.POLICY GET p"), "limits FIXED FOREVER 100 NOTIFY 10% 20% ")
}

// TestStreamsOfEvents checks the forms in which stock clients read events.
func TestStreamsOfEvents(t *testing.T) {
	c := defaultClient(t)
	c.say("RL.POLICY SET p LIMIT FIXED FOREVER 100 NOTIFY 10% 20% 30% RECORD")
	c.say("RL.RESERVE p k 25 1m ID h")
	c.say("RL.COMMIT h 30")
	ms := strings.Split(c.say("XRANGE weir:events - + COUNT 1"), "-")[0]
	first := "kind threshold policy p key k id h share 10 amount 25 used 25 limit 100"
	second := "kind threshold policy p key k id h share 20 amount 25 used 25 limit 100"
	third := "kind threshold policy p key k id h share 30 amount 5 used 30 limit 100"
	last := "kind settled policy p key k id h share 0 amount 30 used 30 limit 100"
	entry := func(cursor, fields string) string { return ms + "-" + cursor + " " + fields }
	for send, want := range map[string][]string{
		"XREAD COUNT 2 STREAMS weir:events 0":              {"weir:events", entry("1", first), entry("2", second)},
		"XREAD STREAMS weir:events " + ms + "-2":           {"weir:events", entry("3", third), entry("4", last)},
		"XREAD STREAMS weir:events 0-3":                    {"weir:events", entry("4", last)},
		"XREAD STREAMS weir:events " + ms + " COUNT":       nil,
		"XRANGE weir:events (0-1 0-3":                      {entry("2", second), entry("3", third)},
		"XRANGE weir:events 0-2 (0-3":                      {entry("2", second)},
		"XRANGE weir:events " + ms + " " + ms + " COUNT 1": {entry("1", first)},
		"XRANGE weir:events - (" + ms:                      {""},
		"XRANGE weir:events (" + ms + " +":                 {""},
		"XRANGE weir:events 0-9 +":                         {""},
		"XLEN weir:events":                                 {"4"},
	} {
		if want != nil {
			require.Equal(t, strings.Join(want, " "), c.say(send), send)
		}
	}
	require.Equal(t, "*-1\r\n", c.raw("XREAD", "STREAMS", "weir:events", "$"))
	require.True(t, strings.HasPrefix(c.raw("XREAD", "STREAMS", "weir:events", "0-3"), "*1\r\n*2\r\n$11\r\nweir:events\r\n*1\r\n*2\r\n"))
	c.say("HELLO 3")
	require.Equal(t, "_\r\n", c.raw("XREAD", "STREAMS", "weir:events", "$"))
	require.True(t, strings.HasPrefix(c.raw("XREAD", "STREAMS", "weir:events", "0-3"), "%1\r\n$11\r\nweir:events\r\n*1\r\n*2\r\n"))
}

// TestAReaderThatMissedEvents checks that no reader of a full log loses events without an error, which says where to
// go on.
func TestAReaderThatMissedEvents(t *testing.T) {
	lim := servertest.NewTableLimiter()
	lim.Table = engine.NewTable(engine.Options{EventsBytes: engine.MinEventsBytes})
	srv, err := NewShared(silent(Config{EnableDebug: true}), lim)
	require.NoError(t, err)
	c := (&testServer{Shared: srv, lim: lim}).client(t)
	c.say("RL.POLICY SET p LIMIT FIXED FOREVER 1 NOTIFY 100%")
	for i := range 2000 {
		c.say("RL.CHECK p " + strings.Repeat("k", i%100+1) + string(rune('0'+i/100)) + "x" + strings.Repeat("y", i/100))
	}
	_, at, _ := lim.Table.Events(0, 0)
	require.Equal(t, uint64(2000), at.Last)
	require.Positive(t, at.Dropped())
	for _, send := range []string{"RL.EVENTS AFTER 0", "RL.EVENTS AFTER 7", "XREAD STREAMS weir:events 0-7",
		"XREAD BLOCK 10 STREAMS weir:events 0-7", "XRANGE weir:events 0-7 +"} {
		require.Contains(t, c.say(send), "EVENTSGONE events after cursor ", send)
	}
	answer := c.say("RL.EVENTS AFTER 7")
	_, next, _ := strings.Cut(answer, "go on with AFTER ")
	next, _, _ = strings.Cut(next, ",")
	require.True(t, strings.HasPrefix(c.say("RL.EVENTS AFTER "+next+" COUNT 1"), "cursor "))
	require.True(t, strings.HasPrefix(c.say("RL.EVENTS COUNT 1"), "cursor "))
	require.NotContains(t, c.say("XREAD COUNT 1 STREAMS weir:events 0"), "EVENTSGONE")
}

// TestACursorOfAnotherLog checks that the place of a reader is known by its time: an event with the same cursor and
// another time is of another log. A cursor without a time is not checked.
func TestACursorOfAnotherLog(t *testing.T) {
	lim := servertest.NewTableLimiter()
	lim.Table = engine.NewTable(engine.Options{EventsBytes: engine.MinEventsBytes})
	srv, err := NewShared(silent(Config{EnableDebug: true}), lim)
	require.NoError(t, err)
	c := (&testServer{Shared: srv, lim: lim}).client(t)
	c.say("RL.POLICY SET p LIMIT FIXED FOREVER 1 NOTIFY 100%")
	const base = servertest.TestWallNs / 1e6
	for i := range 1000 { // event n is n seconds after the base
		lim.Stamp.NowNs += 1e9
		c.say(fmt.Sprint("RL.CHECK p ", strings.Repeat("k", 100), i))
	}
	_, at, _ := lim.Table.Events(0, 0)
	require.Equal(t, uint64(1000), at.Last)
	oldest := int64(at.First)
	require.Greater(t, oldest, int64(100))
	id := func(atCursor, cursor int64) string { return fmt.Sprint(base+1000*atCursor, "-", cursor) }
	reads := func(id string) []string {
		return []string{"RL.EVENTS COUNT 1 AFTER " + id, "XREAD COUNT 1 STREAMS weir:events " + id,
			"XREAD COUNT 1 BLOCK 10 STREAMS weir:events " + id, "XRANGE weir:events (" + id + " + COUNT 1"}
	}
	another := fmt.Sprintf("because this cursor comes from another log, or the log was restored: go on with %%s%d, "+
		"before its oldest event, and skip the events whose time and cursor you have", oldest-1)
	gone := fmt.Sprintf("events after cursor 5 are gone, because --events-memory bounds the log: go on with %%s%d, "+
		"which misses %d events", oldest-1, oldest-6)
	for _, reader := range []struct{ id, want string }{
		{id(oldest, oldest), id(oldest+1, oldest+1)},
		{id(998, 998), id(999, 999)},
		{id(oldest-1, oldest-1), id(oldest, oldest)}, // dropped, and nothing was missed
		{"0-998", id(999, 999)},
		{id(999, 998), another},
		{id(997, 998), another},
		{id(oldest+1, oldest-1), another}, // dropped, and the next event is older than it
		{id(oldest+1, 5), another},
		{id(5, 5), gone},
		{id(1001, 1001), another},
	} {
		for i, send := range reads(reader.id) {
			got, want, on := c.say(send), reader.want, "the id 0-"
			if i == 0 { // RL.EVENTS
				want, on = regexp.MustCompile(`^(\d+)-(\d+)$`).ReplaceAllString(want, "cursor $2 time_ms $1 "), "AFTER "
			}
			want = strings.Replace(want, "%s", on, 1)
			require.Contains(t, got, want, send)
			require.Equal(t, strings.Contains(want, "go on"), strings.Contains(got, "EVENTSGONE"), send)
		}
	}
	for send, want := range map[string]string{
		"RL.EVENTS COUNT 1 AFTER 998":                         "cursor 999 ",
		"XRANGE weir:events (0-1001 +":                        "",
		"XRANGE weir:events " + id(999, 998) + " + COUNT 1":   id(998, 998), // the first id of a range, and no place
		"XRANGE weir:events (" + id(998, 0) + " + COUNT 1":    id(998, 998), // cursors begin at 1
		"XREAD COUNT 1 STREAMS weir:events " + id(998, 0):     id(998, 998),
		"XREAD COUNT 1 STREAMS weir:events 0-0":               id(oldest, oldest),
		"XREAD COUNT 1 STREAMS weir:events " + id(1000, 1000): "",
	} {
		got := c.say(send)
		require.Contains(t, got, want, send)
		require.NotContains(t, got, "EVENTSGONE", send)
	}
	c.say("READONLY") // a stale read may precede what the reader has seen
	for _, send := range reads(id(1001, 1001)) {
		require.NotContains(t, c.say(send), "EVENTSGONE", send)
	}
	for _, send := range reads(id(999, 998)) {
		require.Contains(t, c.say(send), "EVENTSGONE", send)
	}
}

// TestReadersWaitForEvents checks that a waiting reader is answered by the next event, by the end of its time, or by
// the stop of the server, and that waiting readers are bounded.
func TestReadersWaitForEvents(t *testing.T) {
	inWaitRoom(t, func(t *testing.T, r *waitRoom) {
		c := r.client(t)
		c.say("RL.POLICY SET p LIMIT FIXED FOREVER 100 NOTIFY 10% 20%")
		r.says("late", "RL.EVENTS BLOCK 3s")
		time.Sleep(4 * time.Second)
		r.expect("late 3s ")
		r.says("a", "RL.EVENTS AFTER 0 BLOCK 10s")
		r.says("b", "XREAD BLOCK 10000 STREAMS weir:events $")
		require.Equal(t, int32(2), r.EventWaits.Count.Load())
		require.Contains(t, c.say("INFO clients"), "blocked_clients:2")
		c.say("RL.CHECK p k COST 10")
		a, b := <-r.done, <-r.done
		require.Contains(t, a.reply+b.reply, "weir:events")
		require.Contains(t, a.reply+b.reply, "cursor 1 ")
		synctest.Wait()
		require.Zero(t, r.EventWaits.Count.Load())
		r.says("stopped", "XREAD BLOCK 0 STREAMS weir:events $")
		close(r.Stop)
		require.Contains(t, (<-r.done).reply, "TRYAGAIN")
		r.EventWaits.Count.Store(service.MaxEventWaiters)
		require.Contains(t, c.say("RL.EVENTS AFTER 1 BLOCK 1s"), "OVERLOADED")
		r.EventWaits.Count.Store(0)
	})
}

// TestEventsNeedTheirKey checks that a user reads events, which name the keys of others, only with permission for the
// key of the log.
func TestEventsNeedTheirKey(t *testing.T) {
	srv, _ := usersServer(t, "", "user boss on "+hashOf("pb")+" ~* +@all\nuser app on "+hashOf("pa")+
		" ~app:* +@all\nuser bill on "+hashOf("pc")+" ~weir:events +@all\n")
	boss, app, bill := srv.client(t), srv.client(t), srv.client(t)
	require.Equal(t, "OK", boss.say("AUTH boss pb"))
	require.Equal(t, "OK", app.say("AUTH app pa"))
	require.Equal(t, "OK", bill.say("AUTH bill pc"))
	boss.say("RL.POLICY SET p LIMIT FIXED FOREVER 100 NOTIFY 50%")
	require.Contains(t, boss.say("RL.CHECK p other:k COST 60"), "1 40")
	for _, send := range []string{
		"RL.EVENTS", "XREAD STREAMS weir:events 0", "XRANGE weir:events - +", "XLEN weir:events",
		"RL.EVENTS AFTER 1 BLOCK 1s", "XREAD BLOCK 10 STREAMS weir:events $",
	} {
		require.Contains(t, app.say(send), "-NOPERM", send)
		require.NotContains(t, bill.say(send), "NOPERM", send)
	}
}

// TestALateCommitIsBilledOnce checks that the events of a hold that was cancelled and then committed sum up to its cost.
func TestALateCommitIsBilledOnce(t *testing.T) {
	c := newTestServer(t, Config{}).client(t)
	c.say("RL.POLICY SET b LIMIT FIXED FOREVER 1000 RECORD")
	c.say("RL.POLICY SET credits LIMIT FIXED FOREVER 1000 RECORD")
	c.say("RL.RESERVE b k 100 1m ID h")
	require.Equal(t, "900", c.say("RL.COMMIT h 50 KEEP"))
	require.Equal(t, "1", c.say("RL.CANCEL h"))
	require.Equal(t, "920", c.say("RL.COMMIT h 80"))
	c.say("RL.RESERVE b other 990 1m ELSE credits other ID i")
	c.say("RL.RESERVE b other 20 1m ELSE credits other SPLIT ID j")
	require.Equal(t, "1", c.say("RL.CANCEL j"))
	c.say("RL.COMMIT j 15")
	amounts := regexp.MustCompile(`policy (\w+) key \w+ id (\w) share 0 amount (\d+)`).FindAllStringSubmatch(
		c.say("RL.EVENTS AFTER 0"), -1)
	var seen []string
	for _, m := range amounts {
		seen = append(seen, strings.Join(m[1:], " "))
	}
	require.Equal(t, []string{"b h 50", "b h 30", "b j 0", "credits j 0", "b j 10", "credits j 5"}, seen)
}
