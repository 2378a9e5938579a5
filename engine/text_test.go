package engine_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

var textAt = engine.Stamp{NowNs: 1_800_000_000e9}

func textOp(id engine.ScriptID, key string, args []float64, values ...string) engine.Op {
	call := &engine.Script{ID: id}
	copy(call.Args[:], args)
	for i, v := range values {
		call.Values[i] = []byte(v)
	}
	return engine.Op{Code: engine.OpScript, Key: []byte(key), Cost: 1, Script: call}
}

func setText(key, value string) engine.Op { return textOp(engine.TextSet, key, nil, value) }

// textOf returns the answer of GET: the value, and whether the key exists.
func textOf(table *engine.Table, key string) (value string, there bool) {
	d := decideOne(table, step{textAt, textOp(engine.CountGet, key, nil)})
	words := d.ScriptAnswer()
	if words[2] == 0 {
		return fmt.Sprint(words[0]), words[1] != -2
	}
	return d.Value, true
}

// longTexts need no block, a part of a block, exactly one block, one byte more than a block, and the most blocks.
var longTexts = []string{"", "a", strings.Repeat("b", 1020), strings.Repeat("c", 1021), strings.Repeat("d", 5000),
	strings.Repeat("e", engine.MaxValueBytes)}

// TestTextsAreKept checks that a value can be read after it replaced a longer or shorter one, and after a store and a
// load. The state must be the same after the load.
func TestTextsAreKept(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for _, before := range longTexts {
		table := engine.NewTable(engine.Options{Shards: 1, TrackChanges: true})
		for i, value := range longTexts {
			key := fmt.Sprint("k", i)
			for _, v := range []string{before, value, strings.ToUpper(value)} {
				decideOne(table, step{textAt, setText(key, v)})
				got, there := textOf(table, key)
				require.True(t, there && got == v, "%d bytes over %d", len(v), len(before))
			}
		}
		stored := entries{}
		require.NoError(t, table.Drain(10, into(t, stored)))
		again := loaded(t, textAt, stored, 4)
		require.Equal(t, table.StateHash(textAt), again.StateHash(textAt))
		for i, value := range longTexts {
			got, there := textOf(again, fmt.Sprint("k", i))
			require.True(t, there && got == strings.ToUpper(value))
		}
		for i := range longTexts {
			decideOne(table, step{textAt, engine.Op{Code: engine.OpReset, Key: fmt.Append(nil, "k", i), Cost: 1}})
		}
		_, taken := table.Usage()
		require.Zero(t, taken, "the blocks of deleted texts must be free")
	}
}

// TestTextsInTheStateHash checks that one byte in any block changes the state hash, and that a key with an empty string
// has another state hash than no key.
func TestTextsInTheStateHash(t *testing.T) {
	hash := func(value string) uint64 {
		table := engine.NewTable(engine.Options{})
		decideOne(table, step{textAt, setText("k", value)})
		return table.StateHash(textAt)
	}
	require.NotEqual(t, hash(""), engine.NewTable(engine.Options{}).StateHash(textAt))
	for _, value := range longTexts[1:] {
		for _, at := range []int{0, len(value) / 2, len(value) - 1} {
			require.NotEqual(t, hash(value), hash(value[:at]+"x"+value[at+1:]), "byte %d of %d", at, len(value))
		}
	}
}

// TestStoredTextsAreChecked checks that a stored text which is cut, or has a wrong length, is refused.
func TestStoredTextsAreChecked(t *testing.T) {
	table := engine.NewTable(engine.Options{TrackChanges: true})
	decideOne(table, step{textAt, setText("k", "hello")})
	stored := entries{}
	require.NoError(t, table.Drain(10, into(t, stored)))
	for key, values := range stored {
		value := values.values[0]
		for cut := range len(value) {
			err := loadOne(engine.NewTable(engine.Options{}), textAt, []byte(key), value[:cut])
			require.ErrorIs(t, err, engine.ErrStored, "cut to %d", cut)
		}
		err := loadOne(engine.NewTable(engine.Options{}), textAt, []byte(key), append(bytes.Clone(value), 'x'))
		require.ErrorIs(t, err, engine.ErrStored)
		negative := bytes.Clone(value)
		negative[1+8+7] = 0x80 // the sign bit of the length
		err = loadOne(engine.NewTable(engine.Options{}), textAt, []byte(key), negative)
		require.ErrorIs(t, err, engine.ErrStored)
	}
}

// TestFloodOfTexts checks that texts of all lengths never exceed the memory bound. Remaining texts must be intact
// although pages are compacted.
func TestFloodOfTexts(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	const bound = 8 << 20
	for _, full := range []engine.FullPolicy{engine.LeastHarm, engine.Deny} {
		table := engine.NewTable(engine.Options{Shards: 4, MaxMemoryBytes: bound, WhenFull: full})
		rng := rand.New(rand.NewPCG(1, uint64(full)))
		valueOf := func(i int) string {
			return strings.Repeat(fmt.Sprint("value ", i, ";"), 1+i%7*i%13*20)
		}
		denied := 0
		for i := range 30_000 {
			key := rng.IntN(10_000)
			d := decideOne(table, step{textAt, setText(fmt.Sprint("k", key), valueOf(key))})
			if d.Status == engine.OutOfMemory {
				denied++
			}
			require.LessOrEqual(t, table.MemoryBytes(), int64(bound), "after %d", i)
		}
		there := 0
		for key := range 10_000 {
			got, ok := textOf(table, fmt.Sprint("k", key))
			if ok {
				there++
				require.True(t, got == valueOf(key), "key %d", key)
			}
		}
		stats := table.Stats(textAt)
		require.Greater(t, there, 500)
		require.Equal(t, full == engine.Deny, denied > 0, "%d denied", denied)
		require.Equal(t, full == engine.LeastHarm, stats.Evicted > 0, "%d evicted", stats.Evicted)
	}
}

// TestRefusedTextChangesNothing checks that a longer value is refused without free memory, and that the previous
// value stays.
func TestRefusedTextChangesNothing(t *testing.T) {
	table := engine.NewTable(engine.Options{Shards: 1, MaxMemoryBytes: 1 << 20, WhenFull: engine.Deny})
	decideOne(table, step{textAt, setText("k", "before")})
	for i := range 3 { // this leaves some free slots, which a refused text takes first
		decideOne(table, step{textAt, setText(fmt.Sprint("free", i), strings.Repeat("x", 1000))})
	}
	for i, full := 0, false; !full; i++ {
		full = decideOne(table,
			step{textAt, setText(fmt.Sprint("fill", i), strings.Repeat("x", 1000))}).Status == engine.OutOfMemory
	}
	for i := range 3 {
		decideOne(table, step{textAt, textOp(engine.TextTake, fmt.Sprint("free", i), nil)})
	}
	hash := table.StateHash(textAt)
	entries, bytes := table.Usage()
	require.Equal(t, engine.OutOfMemory,
		decideOne(table, step{textAt, setText("k", strings.Repeat("y", 100_000))}).Status)
	require.Equal(t, hash, table.StateHash(textAt))
	entriesNow, bytesNow := table.Usage()
	require.Equal(t, []int64{entries, bytes}, []int64{entriesNow, bytesNow}, "no block of the refused text may stay")
	got, _ := textOf(table, "k")
	require.Equal(t, "before", got)
}

// TestTextsEnd checks that a text exists until its time to live is over, and that its memory is then free.
func TestTextsEnd(t *testing.T) {
	table := engine.NewTable(engine.Options{Shards: 1})
	decideOne(table, step{textAt,
		textOp(engine.TextSet, "k", []float64{engine.TextExpireMs, 1500}, strings.Repeat("v", 3000))})
	at := engine.Stamp{NowNs: textAt.NowNs + 1500e6}
	require.True(t, table.Has(at, []byte("k")))
	at.NowNs += 1e6
	require.False(t, table.Has(at, []byte("k")))
	require.Zero(t, table.Len(at))
	_, taken := table.Usage()
	require.Zero(t, taken)
}
