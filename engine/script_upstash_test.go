package engine_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// windowKeys is a Redis with a key for each window of one limiter: the count, and the time at which the key ends.
type windowKeys map[int64][2]int64

func (k windowKeys) get(window, nowMs int64) int64 {
	if nowMs > k[window][1] {
		delete(k, window)
	}
	return k[window][0]
}

// slide is the script of the library, with the time of the client and of the server.
func (k windowKeys) slide(limit, clientMs, windowMs, count, serverMs int64) int64 {
	window := clientMs / windowMs
	now, before := k.get(window, serverMs), k.get(window-1, serverMs)
	part := float64(clientMs%windowMs) / float64(windowMs)
	weighted := int64(math.Floor((1 - part) * float64(before)))
	if count > 0 && weighted+now >= limit {
		return -1
	}
	ends := k[window][1]
	if now == 0 {
		ends = serverMs + 2*windowMs + 1000
	}
	k[window] = [2]int64{now + count, ends}
	return limit - (now + count + weighted)
}

// TestWindowsOfUpstash compares the windows in one record with a key for each window, for clients whose clocks differ
// by up to a second.
func TestWindowsOfUpstash(t *testing.T) {
	denied, late := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 52))
		windowMs := []int64{200, 1000, 1500, 7000}[rng.IntN(4)]
		limit, keys := 1+rng.Int64N(12), windowKeys{}
		table, last := engine.NewTable(engine.Options{}), int64(0)
		at := engine.Stamp{NowNs: 1_800_000_000e9}
		for call := range 300 {
			at.NowNs += rng.Int64N(1+rng.Int64N(windowMs)) * 1e6
			serverMs := at.NowNs / 1e6
			clientMs := serverMs - rng.Int64N(min(windowMs, 1001))
			count := rng.Int64N(5) - 1
			if clientMs/windowMs < last {
				late++
			}
			last = max(last, clientMs/windowMs)
			op := engine.Op{Code: engine.OpScript, Key: []byte("k"), Script: &engine.Script{ID: engine.UpstashSlide,
				Args: [engine.MaxScriptArgs]float64{float64(limit), float64(clientMs), float64(windowMs),
					float64(count)}}}
			d := decideOne(table, step{at, op})
			got, want := d.ScriptAnswer(), keys.slide(limit, clientMs, windowMs, count, serverMs)
			require.Equal(t, want, got[0], "seed %d, call %d", seed, call)
			require.Equal(t, limit, got[1])
			if want < 0 {
				denied++
			}
		}
	}
	require.Greater(t, denied, 10_000)
	require.Greater(t, late, 5_000)
}

// TestWindowsOfUpstashFarApart checks that a client whose clock is far behind or ahead is limited, too.
func TestWindowsOfUpstashFarApart(t *testing.T) {
	table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1_800_000_000e9}
	admitted := func(clientMs float64) (n int) {
		for range 10 {
			op := engine.Op{Code: engine.OpScript, Key: []byte("k"), Script: &engine.Script{ID: engine.UpstashSlide,
				Args: [engine.MaxScriptArgs]float64{3, clientMs, 1000, 1}}}
			n += int(decideOne(table, step{at, op}).Allowed)
		}
		return n
	}
	require.Equal(t, 3, admitted(1_800_000_000_000))
	require.Equal(t, 3, admitted(1_900_000_000_000), "ahead")
	require.Equal(t, 3, admitted(1_800_000_000_000), "behind")
	require.Zero(t, admitted(1_700_000_000_000), "further behind")
	op := engine.Op{Code: engine.OpScript, Key: []byte("k"), Script: &engine.Script{ID: engine.UpstashSlide,
		Args: [engine.MaxScriptArgs]float64{1e12, 1_900_000_001_000, 1000, math.MaxInt32}}}
	require.Equal(t, engine.OK, decideOne(table, step{at, op}).Status)
	require.Equal(t, engine.Overflow, decideOne(table, step{at, op}).Status)
}
