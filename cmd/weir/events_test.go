package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

// tell writes a number of events, and waits until readers see the last one, which has the cursor last.
func tell(p *process, key string, n, last int) {
	p.t.Helper()
	conn := p.dial()
	for i := range n {
		_, err := conn.Do("RL.CHECK", "p", fmt.Sprint(key, i))
		require.NoError(p.t, err)
	}
	require.Eventually(p.t, func() bool {
		list, err := redis.Values(conn.Do("RL.EVENTS", "AFTER", last-1))
		return err == nil && len(list) == 1
	}, patience, 10*time.Millisecond)
}

// eventIDs returns the ids of the events that weir events printed.
func eventIDs(printed string) (ids []string) {
	for _, found := range regexp.MustCompile(`"event_id":"([0-9-]+)"`).FindAllStringSubmatch(printed, -1) {
		ids = append(ids, found[1])
	}
	return ids
}

// TestEventsOfARestoredServer checks that a reader notices a restored log which has grown beyond its cursor, and goes
// on as the error says.
func TestEventsOfARestoredServer(t *testing.T) {
	dir := t.TempDir()
	file, from := filepath.Join(dir, "old.backup"), filepath.Join(dir, "cursor")
	p := start(t, "--data-dir="+filepath.Join(dir, "one"))
	p.do("RL.POLICY", "SET", "p", "LIMIT", "FIXED", "FOREVER", "1", "NOTIFY", "100%")
	tell(p, "a", 2, 2)
	weir(t, "backup", "--addr", p.addr, file)
	tell(p, "b", 2, 4)
	before := eventIDs(weir(t, "events", "--addr", p.addr, "--from", from))
	require.Len(t, before, 4)
	place := strings.TrimPrefix(before[3], "0-")
	p.stop()

	weir(t, "restore", file, "--data-dir", filepath.Join(dir, "two"))
	p = start(t, "--data-dir="+filepath.Join(dir, "two"))
	tell(p, "c", 4, 6)
	because := "EVENTSGONE the log has no event " + place + ", because this cursor comes from another log, or the " +
		"log was restored: go on with "
	require.Contains(t, squeezed(refusal(t, exec.Command(binary, "events", "--addr", p.addr, "--from", from))),
		because+"--after 0, before its oldest event, and skip the events whose time and cursor you have. Give --after "+
			"once: it also writes "+from)
	kept, err := os.ReadFile(from)
	require.NoError(t, err)
	require.Equal(t, place+"\n", string(kept))
	for _, args := range [][]any{{"RL.EVENTS", "AFTER", place}, {"XREAD", "STREAMS", "weir:events", place},
		{"XRANGE", "weir:events", "(" + place, "+"}} {
		_, err := p.dial().Do(args[0].(string), args[1:]...)
		require.ErrorContains(t, err, because, args)
	}
	after := eventIDs(weir(t, "events", "--addr", p.addr, "--from", from, "--after", "0"))
	require.Len(t, after, 6)
	require.Equal(t, before[:2], after[:2])
	require.NotEqual(t, before[2:], after[2:4])
	tell(p, "d", 1, 7)
	require.Len(t, eventIDs(weir(t, "events", "--addr", p.addr, "--from", from)), 1)
}

// TestAReaderBeforeTheFirstEvent checks that events which the log drops before a reader has seen one are missed with an
// error, and that the reader goes on as the error says.
func TestAReaderBeforeTheFirstEvent(t *testing.T) {
	from := filepath.Join(t.TempDir(), "cursor")
	p := start(t, "--events-memory=64kb")
	run := []string{"events", "--addr", p.addr, "--from", from}
	require.Empty(t, weir(t, run...))
	p.do("RL.POLICY", "SET", "p", "LIMIT", "FIXED", "FOREVER", "1", "NOTIFY", "100%")
	tell(p, strings.Repeat("k", 200), 400, 400)
	gone := squeezed(refusal(t, exec.Command(binary, run...)))
	missed := regexp.MustCompile(`EVENTSGONE events after cursor 0 are gone, because --events-memory bounds the log: go ` +
		`on with --after (\d+), which misses \d+ events\. Give --after once: it also writes`).FindStringSubmatch(gone)
	require.NotNil(t, missed, gone)
	got := eventIDs(weir(t, append(run, "--after", missed[1])...))
	require.Regexp(t, `^0-\d+-400$`, got[len(got)-1])
	require.Equal(t, fmt.Sprint(400-len(got)), missed[1])
	require.Empty(t, weir(t, run...))
}

// TestASecondReaderOfAFile checks that one process at a time uses a file, and that the end of a process by a kill frees
// the file.
func TestASecondReaderOfAFile(t *testing.T) {
	from := filepath.Join(t.TempDir(), "cursor")
	p := start(t)
	run := []string{"events", "--addr", p.addr, "--from", from}
	first := exec.Command(binary, append(run, "--follow")...)
	require.NoError(t, first.Start())
	defer func() { _ = first.Process.Kill() }()
	require.Eventually(t, func() bool {
		info, err := redis.String(p.do("INFO", "clients"), nil)
		return err == nil && strings.Contains(info, "blocked_clients:1")
	}, patience, 10*time.Millisecond)
	require.Contains(t, squeezed(refusal(t, exec.Command(binary, run...))), "another weir events uses "+from)
	require.NoError(t, first.Process.Kill())
	require.Error(t, first.Wait())
	require.Empty(t, weir(t, run...))
}
