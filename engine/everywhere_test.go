package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

var tenAtOnce = engine.Limit{Algorithm: engine.TokenBucket, Rate: engine.Rate{Units: 1, PerNs: 1e9}, Max: 10}

func everywhere(key string, ttlNs int64) engine.Op {
	return engine.Op{Code: engine.OpBlockEverywhere, Key: []byte(key), TTLNs: ttlNs, Cost: 1, Text: []byte("abuse")}
}

func takeOf(key string, l engine.Limit, cost int64) engine.Op {
	return engine.Op{Key: []byte(key), Limit: l, Cost: cost}
}

// TestABlockEverywhereReaches checks which keys a block everywhere denies, for every kind of operation: the key
// itself, and keys that end in a bar and the key.
func TestABlockEverywhereReaches(t *testing.T) {
	table := engine.NewTable(engine.Options{Shards: 64})
	at := engine.Stamp{NowNs: 1e18}
	ask := func(ops ...engine.Op) []engine.Decision {
		out := make([]engine.Decision, len(ops))
		table.Decide(at, ops, out)
		return out
	}
	policy := engine.Op{Code: engine.OpPolicy, Key: []byte("p"),
		Policy: &engine.PolicyChange{Terms: &engine.Policy{Limits: []engine.PolicyLimit{{Limit: tenAtOnce}}}}}
	ask(policy, everywhere("ip:192.0.2.66", 60e9))
	for key, blocked := range map[string]bool{
		"ip:192.0.2.66": true, "login|ip:192.0.2.66": true, "a|b|ip:192.0.2.66": true, "|ip:192.0.2.66": true,
		"192.0.2.66": true, "web|192.0.2.66": true, "ip:192.0.2.6": false, "login|ip:192.0.2.67": false,
		"xip:192.0.2.66": false, "login|ip:192.0.2.66|x": false, "user:192.0.2.66": false, "92.0.2.66": false,
	} {
		check := engine.Op{Code: engine.OpCheck, Key: []byte(key), Text: []byte("p"), Cost: 1}
		hold := engine.Op{Code: engine.OpReserve, Key: []byte(key), Text: []byte("p"), Cost: 1, TTLNs: 1e9,
			ID: []byte("h" + key)}
		incr := engine.Op{Code: engine.OpIncr, Key: []byte(key + "|n|" + key), Incr: &engine.Incr{By: 1, Upper: 9}}
		script := engine.Op{Code: engine.OpScript, Key: []byte(key + "|s|" + key), Cost: 1,
			Script: &engine.Script{ID: engine.RedisRateAllowN, Args: [engine.MaxScriptArgs]float64{4, 3, 1, 1}}}
		for _, op := range []engine.Op{takeOf(key, tenAtOnce, 1), check, hold, incr, script} {
			require.Equal(t, !blocked, ask(op)[0].Allowed > 0, "%s: operation %d", key, op.Code)
		}
		info, _ := table.Inspect(at, []byte(key))
		require.Equal(t, blocked, info.Blocked, key)
		if blocked {
			require.Equal(t, "ip:192.0.2.66 abuse", info.BlockedBy+" "+info.Reason, key)
			require.EqualValues(t, 60e3, ask(takeOf(key, tenAtOnce, 1))[0].RetryMs, key)
		}
	}
	at.NowNs += 60e9
	require.EqualValues(t, 1, ask(takeOf("login|ip:192.0.2.66", tenAtOnce, 1))[0].Allowed, "the block must have ended")
}

// TestBlocksEverywhereTakeTheirTurn checks the order inside one call. A block everywhere, its replacement and its
// removal apply between the operations before and after them. This holds for any number of shards, and for early
// denials.
func TestBlocksEverywhereTakeTheirTurn(t *testing.T) {
	for _, lift := range []engine.Op{
		{Code: engine.OpUnblock, Key: []byte("k"), Cost: 1},
		{Code: engine.OpBlock, Key: []byte("k"), Cost: 1, TTLNs: 1e9}, everywhere("k", 0),
	} {
		for _, shards := range []int{1, 64} {
			var ops []engine.Op
			for part := range 3 {
				for i := range 20 {
					ops = append(ops, takeOf(fmt.Sprintf("%d|k", i), tenAtOnce, 1))
				}
				if part < 2 {
					ops = append(ops, []engine.Op{everywhere("k", 1e9), lift}[part])
				}
			}
			table, out := engine.NewTable(engine.Options{Shards: shards}), make([]engine.Decision, len(ops))
			table.SetRules(engine.RulesBlocks - 1) // by these, a block of the key replaces a block everywhere
			table.Decide(engine.Stamp{NowNs: 1e18}, ops, out)
			for i := range ops {
				want := int64(1)
				if i > 20 && i < 41 {
					want = 0
				}
				require.Equal(t, want, out[i].Allowed, "%d shards, operation %d", shards, i)
			}

			table.Decide(engine.Stamp{NowNs: 1e18}, ops[:21], out)
			denied := make([]bool, 41)
			require.Equal(t, 20, table.Denials(engine.Stamp{NowNs: 1e18}, ops[21:], out, denied),
				"an operation after the removal must wait for it")
			require.False(t, denied[21])
		}
	}
}

// TestBlocksEverywhereHaveABound checks the bound on blocks everywhere. Expired and replaced blocks do not count.
// Clearing and loading a table keep the count right.
func TestBlocksEverywhereHaveABound(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	table := engine.NewTable(engine.Options{Shards: 8, TrackChanges: true})
	at := engine.Stamp{NowNs: 1e18}
	one := func(op engine.Op) engine.Decision {
		var out [1]engine.Decision
		table.Decide(at, []engine.Op{op}, out[:])
		return out[0]
	}
	for i := range engine.MaxBlocksEverywhere {
		require.EqualValues(t, 1, one(everywhere(fmt.Sprint("k", i), 1e9+int64(i))).Allowed)
	}
	require.Equal(t, engine.BlocksFull, one(everywhere("more", 1e9)).Status)
	require.EqualValues(t, 1, one(takeOf("r|more", tenAtOnce, 1)).Allowed, "a refused block must not change anything")
	require.EqualValues(t, 1, one(everywhere("k7", 5e9)).Allowed, "a block may replace another one at the bound")
	require.EqualValues(t, 1, one(engine.Op{Code: engine.OpBlock, Key: []byte("single"), TTLNs: 1e9}).Allowed)
	at.NowNs += 1e9
	require.EqualValues(t, 1, one(everywhere("more", 1e9)).Allowed, "k0 must have expired")
	require.Equal(t, engine.BlocksFull, one(everywhere("still more", 1e9)).Status)

	loaded := engine.NewTable(engine.Options{Shards: 2})
	require.NoError(t, table.Drain(1024, func(chunk []engine.Change) error {
		for _, c := range chunk {
			_, err := loaded.Load(at, []engine.Change{c})
			require.NoError(t, err)
		}
		return nil
	}))
	table = loaded
	require.Zero(t, one(takeOf("r|more", tenAtOnce, 1)).Allowed)
	require.Equal(t, engine.BlocksFull, one(everywhere("still more", 1e9)).Status)
	table.Clear()
	require.EqualValues(t, 1, one(takeOf("r|more", tenAtOnce, 1)).Allowed)
	require.EqualValues(t, 1, one(everywhere("still more", 1e9)).Allowed)
}
