package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
)

// bounded is traffic on a table at its memory bound. It has policies that change to limits with longer states, checks
// of several policies, holds, and keys of all lengths.
type bounded struct {
	*rand.Rand
	table *Table
	at    Stamp
	holds [][]byte
}

func newBounded(seed uint64) *bounded {
	b := &bounded{Rand: rand.New(rand.NewPCG(seed, 11)), at: Stamp{NowNs: 1e18}}
	o := Options{Shards: 1, TrackChanges: true, IDLifetimeNs: 1e9, MaxMemoryBytes: 100_000 + b.Int64N(60_000)}
	if seed%5 == 0 {
		o.WhenFull = Deny
	}
	b.table = NewTable(o)
	return b
}

func (b *bounded) do(op Op) Decision {
	var d [1]Decision
	b.table.Decide(b.at, []Op{op}, d[:])
	return d[0]
}

func (b *bounded) limit() PolicyLimit {
	per := []int64{1e9, 60e9, MaxWindowNs, MaxWindowNs - 1, MaxWindowNs / 2}[b.IntN(5)]
	l := Limit{Algorithm: TokenBucket, Rate: Rate{Units: 1, PerNs: per}, Max: 4 + b.Int64N(3)}
	switch b.IntN(8) {
	case 0:
		l = Limit{Algorithm: FixedWindow, Mode: FromFirst, WindowNs: 60e9, Max: 5}
	case 1:
		l = Limit{Algorithm: SlidingLog, WindowNs: 60e9, Max: 20}
	case 2:
		l.Algorithm = LeakyBucket
	case 3:
		steps := MakeSteps([]Step{{Threshold: 2, PenaltyNs: 1e9}, {Threshold: 5, PenaltyNs: 20e9}})
		l = Limit{Algorithm: Strike, Strikes: Extend, WindowNs: 60e9, Steps: steps, Max: 5}
	}
	return PolicyLimit{Limit: l}
}

func (b *bounded) setPolicy() {
	terms := &Policy{Shadow: b.IntN(8) == 0}
	for range 1 + b.IntN(4) {
		terms.Limits = append(terms.Limits, b.limit())
	}
	b.do(Op{Code: OpPolicy, Key: []byte([]string{"p", "q"}[b.IntN(2)]),
		Policy: &PolicyChange{Do: PolicySet, Terms: terms}})
}

func (b *bounded) step(i int) Decision {
	key := fmt.Append(nil, "k", b.IntN(8))
	op := Op{Code: OpCheck, Key: key, Text: []byte("p"), Cost: 1 + b.Int64N(4), Partial: b.IntN(6) == 0}
	if b.IntN(2) == 0 {
		op.Also = []Pair{{[]byte("q"), key}}
	}
	switch b.IntN(10) {
	case 0:
		if b.IntN(3) == 0 {
			b.setPolicy()
		}
	case 1:
		n := []int{30, 60, 100, 140, 200, 260, 350, 400}[b.IntN(8)] // each length is in another size class
		long := fmt.Append(nil, strings.Repeat("x", n), b.IntN(300))
		return b.do(Op{Key: long, Limit: Limit{Algorithm: FixedWindow, Mode: Forever, Max: 10}, Cost: 1})
	case 2:
		op.Code, op.TTLNs, op.ID, op.Partial = OpReserve, 1+b.Int64N(5e9), fmt.Append(nil, "h", i%40), false
		b.holds = append(b.holds, op.ID)
	case 3:
		if len(b.holds) > 0 {
			code := []OpCode{OpCommit, OpCancel}[b.IntN(2)]
			return b.do(Op{Code: code, Key: b.holds[b.IntN(len(b.holds))], Cost: b.Int64N(20)})
		}
	case 4:
		b.at.NowNs += b.Int64N(2e9)
	case 5:
		if b.IntN(5) > 0 {
			break
		}
		return b.do(Op{Code: OpBlock, Key: key, TTLNs: 1e8, Text: []byte("because")})
	}
	return b.do(op)
}

// TestAccountsAtTheBound checks that the counters, limits and references of a table agree with its entries. After any
// eviction, refusal or growth, nothing of a removed entry remains or is referenced.
func TestAccountsAtTheBound(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	evicted, refused := int64(0), 0
	for seed := range uint64(100) {
		b := newBounded(seed)
		b.setPolicy()
		for i := range 1500 {
			if b.step(i).Status == OutOfMemory {
				refused++
			}
			if i%50 == 0 {
				require.NoError(t, b.table.shards[0].Audit())
			}
			if i%200 == 0 {
				require.NoError(t, b.table.Drain(100, func([]Change) error { return nil }))
			}
		}
		evicted += b.table.evictions()
	}
	require.Positive(t, evicted)
	require.Positive(t, refused)
	t.Log(evicted, "evicted", refused, "refused")
}
