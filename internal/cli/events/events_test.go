package events

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/remote"
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
	return &Command{Server: remote.Server{Addr: addr}}, conn
}

// TestEventsArePrinted checks the lines of a run without a receiver.
func TestEventsArePrinted(t *testing.T) {
	c, _ := server(t)
	var out bytes.Buffer
	require.NoError(t, c.run(t.Context(), &out, io.Discard))
	require.Equal(t, 3, strings.Count(out.String(), "\n"))
	var e Event
	require.NoError(t, json.NewDecoder(&out).Decode(&e))
	require.Equal(t, "0-1 1 threshold p k 50 100 100 100", strings.TrimSpace(strings.Join([]string{
		e.ID, "1", e.Kind, e.Policy,
		e.Key, "50 100 100 100"}, " ")))
	require.Equal(t, []int64{1, 50, 100, 100, 100}, []int64{e.Cursor, e.Share, e.Amount, e.Used, e.Limit})
}

// TestDeliveryIsInOrder checks that a receiver that fails gets each event again, in the order of the events, and that
// another run goes on behind the last event.
func TestDeliveryIsInOrder(t *testing.T) {
	c, conn := server(t)
	var got []string
	var calls atomic.Int64
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Weir-Event-Id"))
		if calls.Add(1) == 2 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer hook.Close()
	c.Webhook, c.From = hook.URL, filepath.Join(t.TempDir(), "cursor")
	var said bytes.Buffer
	require.NoError(t, c.run(t.Context(), io.Discard, &said))
	require.Equal(t, []string{"0-1", "0-2", "0-2", "0-3"}, got)
	require.Contains(t, said.String(),
		"event 0-2 was not delivered: the receiver answered 502 Bad Gateway; trying again")
	kept, err := os.ReadFile(c.From)
	require.NoError(t, err)
	require.Equal(t, "3\n", string(kept))
	_, err = conn.Do("RL.CHECK", "p", "other", "COST", "50")
	require.NoError(t, err)
	require.NoError(t, c.run(t.Context(), io.Discard, &said))
	require.Equal(t, []string{"0-1", "0-2", "0-2", "0-3", "0-4"}, got)
}

// TestAProgramGetsTheEvent checks --exec.
func TestAProgramGetsTheEvent(t *testing.T) {
	c, _ := server(t)
	to := filepath.Join(t.TempDir(), "events")
	c.Exec = "cat >> " + to + "; echo $EVENT_ID >> " + to
	require.NoError(t, c.run(t.Context(), io.Discard, io.Discard))
	text, err := os.ReadFile(to)
	require.NoError(t, err)
	require.Contains(t, string(text), `"event_id":"0-3","cursor":3`)
	require.Contains(t, string(text), "\n0-3\n")
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
	require.NoFileExists(t, c.From)
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
	for want, set := range map[string]func(*Command){
		"give either --webhook or --exec, not both":             func(c *Command) { c.Webhook, c.Exec = "http://a", "b" },
		"--webhook must be a URL like https://example.org/weir": func(c *Command) { c.Webhook = "ftp://x" },
		"must have the cursor of an event, like 42":             func(c *Command) { c.From = damaged },
		"AFTER must be a whole number":                          func(c *Command) { c.After = "x" },
		"EVENTSGONE":                                            func(c *Command) { c.After, c.Follow = "9", true },
		"GROUP must be a whole number from 0 to 0":              func(c *Command) { c.Group = 1 },
	} {
		one := *c
		set(&one)
		require.ErrorContains(t, one.run(context.Background(), io.Discard, io.Discard), want)
	}
}
