package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/persistence"
)

const (
	// someKeys are created in every simulated hour. manyKeys are enough for a million live keys, because each lives for
	// keyHours.
	someKeys, manyKeys = 2_000, 250_000
	keyHours           = 4
	// dayPipeline is how many decisions are sent together, and dayClients how many connections come and go in an hour.
	dayPipeline = 1_000
	dayClients  = 50
	// heapSlack is the collector's own overhead, in addition to a tenth.
	heapSlack = 24 << 20
	// storeSlack is how many more files and goroutines one merge of Pebble may take than another, apart from its
	// tables. A leak with every hour or client would be larger.
	storeSlack = 24
)

// footprint is the resources of a process.
type footprint struct {
	keys, resident, goroutines int64
	files, tables              int64 // open descriptors: all but Pebble's tables; these tables, which stay open
}

func (f footprint) String() string {
	return fmt.Sprintf("%d keys, %d MB resident, %d descriptors, %d of Pebble's tables, %d goroutines", f.keys,
		f.resident>>20, f.files, f.tables, f.goroutines)
}

// TestADayLeavesNothingBehind simulates a day on the server's own clock, hour by hour, with changing keys and clients.
// Once as many keys expire as are created, no resource may grow. WEIRTEST_DAY=1 has a million keys at any moment, six
// million in all.
func TestADayLeavesNothingBehind(t *testing.T) {
	keys := someKeys
	if os.Getenv("WEIRTEST_DAY") != "" {
		keys = manyKeys
	}
	p := start(t, "--test-clock", "--data-dir="+t.TempDir())
	conn := p.dial()
	var settled footprint // the maximum of each, from the hour in which keys expire until noon
	for hour := range 24 {
		p.spendHour(conn, hour, keys)
		now := p.footprint(conn)
		if hour%keyHours == 0 || hour == 23 {
			t.Logf("hour %2d: %v", hour, now)
		}
		switch {
		case hour < keyHours:
		case hour < 12:
			settled.raise(now)
		default:
			require.LessOrEqual(t, now.keys, settled.keys, "hour %d", hour)
			require.LessOrEqual(t, now.resident, settled.resident*11/10+heapSlack, "hour %d", hour)
			require.LessOrEqual(t, now.files, settled.files+storeSlack, "hour %d", hour)
			require.LessOrEqual(t, now.tables, int64(persistence.MaxOpenFiles), "hour %d", hour)
			require.LessOrEqual(t, now.goroutines, settled.goroutines+storeSlack, "hour %d", hour)
		}
	}
	require.Positive(t, settled.keys)
}

// raise takes the maximum of each field.
func (f *footprint) raise(by footprint) {
	f.keys, f.resident = max(f.keys, by.keys), max(f.resident, by.resident)
	f.files, f.goroutines = max(f.files, by.files), max(f.goroutines, by.goroutines)
}

// spendHour creates keys, connects clients, and lets an hour pass.
func (p *process) spendHour(conn redis.Conn, hour, keys int) {
	p.t.Helper()
	limits := [][]any{
		{"RL.TOKENBUCKET", "1/" + strconv.Itoa(keyHours) + "h", 1},
		{"RL.FIXED", strconv.Itoa(keyHours) + "h", 5, "FIRST"},
		{"RL.SLIDING", strconv.Itoa(keyHours) + "h", 5},
	}
	for done := 0; done < keys; done += dayPipeline {
		for i := range dayPipeline {
			limit := limits[i%len(limits)]
			key := fmt.Sprintf("%d:%d", hour, done+i)
			require.NoError(p.t, conn.Send(limit[0].(string), append([]any{key}, limit[1:]...)...))
		}
		require.NoError(p.t, conn.Flush())
		for range dayPipeline {
			_, err := conn.Receive()
			require.NoError(p.t, err)
		}
	}
	for range dayClients {
		c, err := redis.Dial("tcp", p.addr)
		require.NoError(p.t, err)
		_, err = c.Do("PING")
		require.NoError(p.t, err)
		require.NoError(p.t, c.Close())
	}
	_, err := conn.Do("DEBUG", "CLOCK", "ADVANCE", time.Hour.Milliseconds())
	require.NoError(p.t, err)
}

var (
	residentPattern = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)
	clientsPattern  = regexp.MustCompile(`(?m)^connected_clients:(\d+)\r$`)
)

// footprint measures the process after the disconnected clients are gone.
func (p *process) footprint(conn redis.Conn) (f footprint) {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		info, err := redis.String(conn.Do("INFO", "clients"))
		require.NoError(p.t, err)
		return number(p.t, clientsPattern, info) == 1
	}, patience, 10*time.Millisecond)
	keys, err := redis.Int64(conn.Do("DBSIZE"))
	require.NoError(p.t, err)
	proc := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	status, err := os.ReadFile(proc + "status")
	require.NoError(p.t, err)
	f.keys, f.resident, f.goroutines = keys, number(p.t, residentPattern, string(status))<<10,
		int64(p.metric("go_goroutines"))
	files, err := os.ReadDir(proc + "fd")
	require.NoError(p.t, err)
	for _, fd := range files {
		// A descriptor that was closed meanwhile has no name and is counted, which is harmless.
		if name, _ := os.Readlink(proc + "fd/" + fd.Name()); strings.HasSuffix(
			strings.TrimSuffix(name, " (deleted)"), ".sst") {
			f.tables++
		} else {
			f.files++
		}
	}
	return f
}

func number(t *testing.T, pattern *regexp.Regexp, text string) int64 {
	t.Helper()
	found := pattern.FindStringSubmatch(text)
	require.NotNil(t, found, "no %v in %.300s", pattern, text)
	n, err := strconv.ParseInt(found[1], 10, 64)
	require.NoError(t, err)
	return n
}
