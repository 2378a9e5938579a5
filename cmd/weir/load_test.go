package main

import (
	"bufio"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

// Each load client takes units that never refill, on a key of its own. The server's state can therefore be compared
// with the client's answers.
const (
	loadClients  = 8
	loadPipeline = 50
)

// ledger is the record of one client: how many units it had been granted at each time.
type ledger struct {
	key    string
	at     []time.Time
	counts []int64
	sent   int64
	err    error
}

// grantedBefore returns the units whose replies the client had before a time.
func (l *ledger) grantedBefore(t time.Time) int64 {
	i, _ := slices.BinarySearchFunc(l.at, t, time.Time.Compare)
	if i == 0 {
		return 0
	}
	return l.counts[i-1]
}

func (l *ledger) granted() int64 { return l.grantedBefore(time.Now()) }

// run sends pipelines until the connection ends, and records every reply.
func (l *ledger) run(c redis.Conn) {
	granted := int64(0)
	for {
		for range loadPipeline {
			_ = c.Send("RL.FIXED", l.key, "FOREVER", "1000000000")
		}
		l.sent += loadPipeline
		if l.err = c.Flush(); l.err != nil {
			// Read the answers that the server sent before it closed the connection.
			for l.receive(c, &granted) == nil {
			}
			return
		}
		for range loadPipeline {
			if l.err = l.receive(c, &granted); l.err != nil {
				return
			}
		}
	}
}

func (l *ledger) receive(c redis.Conn, granted *int64) error {
	reply, err := redis.Int64s(c.Receive())
	if err != nil {
		return err
	}
	*granted += reply[0]
	l.at, l.counts = append(l.at, time.Now()), append(l.counts, *granted)
	return nil
}

// load runs clients against p until it ends.
func load(p *process, name string) (ledgers []*ledger, done *sync.WaitGroup) {
	done = new(sync.WaitGroup)
	for i := range loadClients {
		l := &ledger{key: fmt.Sprintf("%s-%d", name, i)}
		ledgers = append(ledgers, l)
		c := p.dial()
		done.Go(func() { l.run(c) })
	}
	return ledgers, done
}

// used returns how many units of a load client's key the server counts.
func (p *process) used(key string) int64 {
	p.t.Helper()
	return 1_000_000_000 - p.five("RL.FIXED", key, "FOREVER", "1000000000", "COST", "0")[1]
}

// metric returns one unlabeled metric, or 0 if the server does not answer.
func (p *process) metric(name string) float64 {
	reply, err := http.Get(p.web + "/metrics")
	if err != nil {
		return 0
	}
	defer reply.Body.Close()
	for lines := bufio.NewScanner(reply.Body); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), name+" "); found {
			number, _ := strconv.ParseFloat(value, 64)
			return number
		}
	}
	return 0
}

// TestDrainLosesNoReply sends SIGTERM under load. Every applied decision must have been answered and be on disk.
func TestDrainLosesNoReply(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	p := start(t, "--data-dir="+dir)
	ledgers, done := load(p, "drain")
	require.Eventually(t, func() bool { return p.metric("weir_sent_bytes_total") > 1<<20 }, patience, time.Millisecond)
	p.stop()
	done.Wait()

	p = start(t, "--data-dir="+dir)
	for _, l := range ledgers {
		require.Positive(t, l.granted())
		require.Equal(t, l.granted(), p.used(l.key), "%s sent %d; it ended with %v", l.key, l.sent, l.err)
	}
	p.stop()
}

// TestKillForgetsAtMostTheLastFlush kills the server under load (kill -9), three times on the same directory.
// Everything that was answered before the last complete flush began is still counted. Nothing is counted that was never
// sent.
func TestKillForgetsAtMostTheLastFlush(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for round := range 3 {
		p := start(t, "--data-dir="+dir)
		ledgers, done := load(p, fmt.Sprint("round", round))
		var saves []float64 // ends of flushes, as the server tells them
		require.Eventually(t, func() bool {
			if last := p.metric("weir_last_save_timestamp_seconds"); last > 0 && !slices.Contains(saves, last) {
				saves = append(saves, last)
			}
			return len(saves) == 3
		}, patience, 10*time.Millisecond)
		p.signal(syscall.SIGKILL)
		require.Equal(t, -1, p.wait())
		done.Wait()

		// The last flush began after the one before it had ended.
		safe := time.UnixMilli(int64(saves[1] * 1000))
		p = start(t, "--data-dir="+dir)
		kept, forgotten := int64(0), int64(0)
		for _, l := range ledgers {
			used := p.used(l.key)
			require.GreaterOrEqual(t, used, l.grantedBefore(safe), l.key)
			require.LessOrEqual(t, used, l.sent, l.key)
			kept, forgotten = kept+used, forgotten+max(0, l.granted()-used)
		}
		require.Positive(t, kept)
		t.Logf("round %d: %d decisions kept, %d answered and forgotten", round, kept, forgotten)
		require.False(t, strings.Contains(p.output(), `"level":"ERROR"`), p.output())
		p.stop()
	}
}
