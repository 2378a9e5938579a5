package events

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/weirtest"
)

// server returns the command for a server with a policy that told three thresholds.
func server(t *testing.T) (*Command, redis.Conn) {
	addr := weirtest.Start(t).Addr
	conn, err := redis.Dial("tcp", addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	for _, line := range []string{
		"RL.POLICY SET p LIMIT FIXED FOREVER 100 NOTIFY 50% 80% 100%", "RL.CHECK p k COST 100",
	} {
		args := redis.Args{}.AddFlat(strings.Fields(line)[1:])
		_, err := conn.Do(strings.Fields(line)[0], args...)
		require.NoError(t, err)
	}
	return &Command{Addr: []string{addr}, Batch: 1}, conn
}

// TestEventsArePrinted checks the lines of a run without a receiver.
func TestEventsArePrinted(t *testing.T) {
	c, _ := server(t)
	var out bytes.Buffer
	require.NoError(t, c.run(t.Context(), &out, io.Discard))
	require.Equal(t, 3, strings.Count(out.String(), "\n"))
	var e Event
	require.NoError(t, json.NewDecoder(&out).Decode(&e))
	require.Positive(t, e.TimeMs)
	require.Equal(t, Event{ID: fmt.Sprintf("0-%d-1", e.TimeMs), TimeMs: e.TimeMs, Cursor: 1, Kind: "threshold",
		Policy: "p", Key: "k", Share: 50, Amount: 100, Used: 100, Limit: 100}, e)
}

// idTime is the time in the id of an event.
var idTime = regexp.MustCompile(`\b\d{13}-`)

// TestDeliveryIsInOrder checks that a receiver that fails gets each event again, in the order of the events, and that
// another run goes on behind the last event. The file has a place before the first delivery.
func TestDeliveryIsInOrder(t *testing.T) {
	c, conn := server(t)
	var got, kept []string
	var calls atomic.Int64
	c.From = filepath.Join(t.TempDir(), "cursor")
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, idTime.ReplaceAllString(r.Header.Get("Weir-Event-Id"), ""))
		kept = append(kept, file(c.From))
		if calls.Add(1) == 2 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer hook.Close()
	c.Webhook = hook.URL
	var said bytes.Buffer
	require.NoError(t, c.run(t.Context(), io.Discard, &said))
	require.Equal(t, []string{"0-1", "0-2", "0-2", "0-3"}, got)
	require.Regexp(t, `^not delivered: event 0-\d+-2: the receiver answered 502 Bad Gateway; trying`, said.String())
	require.Regexp(t, `^\d{13}-3\n$`, file(c.From))
	for i, want := range []string{"0\n", "1\n", "1\n", "2\n"} {
		require.Equal(t, want, idTime.ReplaceAllString(kept[i], ""))
	}
	_, err := conn.Do("RL.CHECK", "p", "other", "COST", "50")
	require.NoError(t, err)
	require.NoError(t, c.run(t.Context(), io.Discard, &said))
	require.Equal(t, []string{"0-1", "0-2", "0-2", "0-3", "0-4"}, got)
	require.NoError(t, os.WriteFile(c.From, []byte("3\n"), 0o600)) // as an earlier version wrote it
	require.NoError(t, c.run(t.Context(), io.Discard, &said))
	require.Equal(t, []string{"0-1", "0-2", "0-2", "0-3", "0-4", "0-4"}, got)
}

// file returns the text of a file, "" for one that cannot be read.
func file(name string) string {
	text, _ := os.ReadFile(name)
	return string(text)
}

// TestAProgramGetsTheEvent checks --exec.
func TestAProgramGetsTheEvent(t *testing.T) {
	c, _ := server(t)
	to := filepath.Join(t.TempDir(), "events")
	c.Exec = "cat >> " + to + "; echo $EVENT_ID >> " + to
	require.NoError(t, c.run(t.Context(), io.Discard, io.Discard))
	text := idTime.ReplaceAllString(file(to), "")
	require.Contains(t, text, `"event_id":"0-3","cursor":3`)
	require.Contains(t, text, "\n0-3\n")
}

// TestBatches checks that --batch delivers several events at once, again as a whole when the receiver fails, and that
// the last batch does not wait to be full.
func TestBatches(t *testing.T) {
	c, _ := server(t)
	var got []string
	c.Batch, c.From = 2, filepath.Join(t.TempDir(), "cursor")
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var list []Event
		if json.NewDecoder(r.Body).Decode(&list) != nil || r.Header.Get("Weir-Event-Id") != "" {
			t.Error("not an array without an id")
		}
		for i := range list {
			got = append(got, idTime.ReplaceAllString(list[i].ID, ""))
		}
		got = append(got, idTime.ReplaceAllString(file(c.From), ""))
		if len(got) == 3 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer hook.Close()
	c.Webhook = hook.URL
	var said, out bytes.Buffer
	require.NoError(t, c.run(t.Context(), io.Discard, &said))
	require.Equal(t, []string{"0-1", "0-2", "0\n", "0-1", "0-2", "0\n", "0-3", "2\n"}, got)
	require.Regexp(t, `^not delivered: 2 events from 0-\d+-1 on: the receiver answered 502`, said.String())

	to := filepath.Join(t.TempDir(), "events")
	c.Webhook, c.After, c.Exec = "", "0", "cat >> "+to+" && echo done$EVENT_ID >> "+to
	require.NoError(t, c.run(t.Context(), io.Discard, io.Discard))
	text := regexp.MustCompile(`.*"cursor":(\d).*`).ReplaceAllString(file(to), "$1")
	require.Equal(t, "1\n2\ndone\n3\ndone\n", text)
	require.Regexp(t, `^\d{13}-3\n$`, file(c.From))
	c.Exec = ""
	require.NoError(t, c.run(t.Context(), &out, io.Discard))
	require.Equal(t, 3, strings.Count(out.String(), "\n"))
}

// TestOneProgramUsesAFile checks that a second program is refused until the first has ended.
func TestOneProgramUsesAFile(t *testing.T) {
	c, _ := server(t)
	c.From = filepath.Join(t.TempDir(), "cursor")
	second := *c
	refused := make(chan error, 3) // of each event
	ctx, end := context.WithCancel(t.Context())
	defer end()
	hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		refused <- second.run(ctx, io.Discard, io.Discard)
	}))
	defer hook.Close()
	c.Webhook = hook.URL
	ended := make(chan error, 1)
	c.Follow = true
	go func() { ended <- c.run(ctx, io.Discard, io.Discard) }()
	require.ErrorContains(t, <-refused, "--from: another weir events uses "+c.From+", and has locked "+c.From+
		".lock (lock held by current process): stop it, or give each program a file of its own")
	end()
	require.NoError(t, <-ended)
	require.NoError(t, second.run(t.Context(), io.Discard, io.Discard))
}

// saying passes on what was said.
type saying func(text string)

func (s saying) Write(b []byte) (int, error) {
	s(string(b))
	return len(b), nil
}

// leaderless starts a server that answers as a node without a leader.
func leaderless(t *testing.T) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				answers := map[string]string{"PING": "+PONG\r\n", "RL.EVENTS": "-TRYAGAIN no leader\r\n"}
				for lines := bufio.NewScanner(conn); lines.Scan(); {
					if _, err := io.WriteString(conn, answers[lines.Text()]); err != nil {
						return
					}
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// TestTheNextAddress checks that a node that is away, or has no leader, does not keep events from the reader, and that
// there is a pause when all have failed.
func TestTheNextAddress(t *testing.T) {
	c, _ := server(t)
	up, none := c.Addr[0], leaderless(t)
	away := freeport.Addr(t)
	var out, said bytes.Buffer
	c.Addr = []string{away, none, up}
	require.NoError(t, c.run(t.Context(), &out, &said))
	require.Equal(t, 3, strings.Count(out.String(), "\n"))
	require.Contains(t, said.String(), "(--addr): dial tcp "+away)
	require.Contains(t, said.String(), "asking "+none+"\n"+none+": TRYAGAIN no leader; asking "+up+"\n")

	c.Addr = []string{away, none}
	require.ErrorContains(t, c.run(t.Context(), &out, &said), "TRYAGAIN")
	ctx, end := context.WithCancel(t.Context())
	defer end()
	c.Follow = true
	var lines []string
	require.NoError(t, c.run(ctx, &out, saying(func(text string) {
		if lines = append(lines, text); strings.Contains(text, "trying again in") {
			end()
		}
	})))
	require.Len(t, lines, 2)
	require.Contains(t, lines[1], "TRYAGAIN no leader; trying again in 500ms")
}

// TestASignalEndsADelivery checks that a signal during a delivery is no failure of the receiver, and that the event
// counts as not delivered.
func TestASignalEndsADelivery(t *testing.T) {
	c, _ := server(t)
	ctx, signal := context.WithCancel(t.Context())
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		signal()
		_, _ = io.Copy(io.Discard, r.Body) // then the server notices that the client has gone
		<-r.Context().Done()
	}))
	defer hook.Close()
	c.Follow, c.Webhook, c.From = true, hook.URL, filepath.Join(t.TempDir(), "cursor")
	var said bytes.Buffer
	require.NoError(t, c.run(ctx, io.Discard, &said))
	require.Empty(t, said.String())
	require.Equal(t, "0\n", file(c.From))
}

// TestTheFileIsThereBeforeAnEvent checks that a reader which waits for its first event has written the file.
func TestTheFileIsThereBeforeAnEvent(t *testing.T) {
	c := &Command{Addr: []string{weirtest.Start(t).Addr}, Batch: 1, Follow: true}
	conn, err := redis.Dial("tcp", c.Addr[0])
	require.NoError(t, err)
	defer conn.Close()
	c.From = filepath.Join(t.TempDir(), "cursor")
	ctx, end := context.WithCancel(t.Context())
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- c.run(ctx, io.Discard, io.Discard) }()
	require.Eventually(t, func() bool {
		info, _ := redis.String(conn.Do("INFO", "clients"))
		return strings.Contains(info, "blocked_clients:1")
	}, weirtest.Wait, time.Millisecond)
	require.Equal(t, "0\n", file(c.From))
	end()
	require.NoError(t, <-ended)
}

// TestNothingIsDeliveredWithoutAFile checks that a file which cannot be written is noticed before an event is
// delivered.
func TestNothingIsDeliveredWithoutAFile(t *testing.T) {
	c, _ := server(t)
	for _, after := range []string{"", "1"} {
		c.After, c.From = after, filepath.Join(t.TempDir(), "missing", "cursor")
		var out bytes.Buffer
		require.ErrorContains(t, c.run(t.Context(), &out, io.Discard), "--from: open "+filepath.Dir(c.From))
		require.Empty(t, out.String())
	}
}

// TestBadFlagsOfEvents checks the errors for flags and files.
func TestBadFlagsOfEvents(t *testing.T) {
	c, _ := server(t)
	damaged := filepath.Join(t.TempDir(), "cursor")
	require.NoError(t, os.WriteFile(damaged, []byte("x7"), 0o600))
	other := filepath.Join(t.TempDir(), "other")
	for want, set := range map[string]func(*Command){
		"give either --webhook or --exec, not both":             func(c *Command) { c.Webhook, c.Exec = "http://a", "b" },
		"--webhook must be a URL like https://example.org/weir": func(c *Command) { c.Webhook = "ftp://x" },
		"must have the place of an event, like 1767225600000-4": func(c *Command) { c.From = damaged },
		"AFTER must be a cursor":                                func(c *Command) { c.After = "x" },
		"go on with --after 0, before its oldest event":         func(c *Command) { c.After, c.Follow = "9", true },
		"you have. Give --after once: it also writes " + other:  func(c *Command) { c.After, c.From = "1-3", other },
		"--batch must be a number from 1 to 1000, not 1001":     func(c *Command) { c.Batch = 1001 },
		"GROUP must be a whole number from 0 to 0":              func(c *Command) { c.Group = 1 },
	} {
		one := *c
		set(&one)
		require.ErrorContains(t, one.run(context.Background(), io.Discard, io.Discard), want)
	}
	require.NoFileExists(t, other)
}
