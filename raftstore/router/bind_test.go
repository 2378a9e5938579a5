package router

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

// boundOp returns an operation on the blocks of a key with an ID.
func boundOp(code engine.OpCode, key, id string, ttl time.Duration) engine.Op {
	op := engine.Op{Code: code, Key: []byte(key), ID: []byte(id), TTLNs: int64(ttl)}
	if code == engine.OpUnblock {
		op.TTLNs = 0
	}
	op.Bind()
	return op
}

// TestAnIDIsBoundAsInOneGroup gives the same random sequences of blocks with few IDs to one group and to several. The
// answers must be equal, also those that say what the ID was used for.
func TestAnIDIsBoundAsInOneGroup(t *testing.T) {
	used := 0
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 6))
		r, groups := newTest(t, 4)
		one := engine.NewTable(engine.Options{})
		keys := []string{keysOf(r, 0, 1)[0], keysOf(r, 2, 1)[0]}
		for range 30 {
			code := []engine.OpCode{engine.OpBlock, engine.OpBlockEverywhere, engine.OpUnblock}[rnd.IntN(3)]
			op := boundOp(code, keys[rnd.IntN(2)], fmt.Sprint(rnd.IntN(6)), time.Duration(1+rnd.IntN(2))*time.Hour)
			if rnd.IntN(4) == 0 {
				op.ID, op.Asks = nil, engine.Fingerprint{}
			}
			want := make([]engine.Decision, 1)
			one.Decide(at, []engine.Op{op}, want)
			got := decide(t, r, op)[0]
			if want[0].Status == engine.OK {
				want[0].Limit, got.Limit = 0, 0 // the version, which one group does not count
			} else {
				used++
			}
			require.Equal(t, want[0], got, "seed %d: %d %s %s", seed, op.Code, op.Key, op.ID)
		}
		requireEqualGroups(t, groups)
	}
	require.Greater(t, used, 1000)
}

// TestABindingThatFailsIsRepeated checks that a request with an ID works when it is sent again, after the group of its
// key or the first group has failed, or the answer was lost, and that it is carried out once.
func TestABindingThatFailsIsRepeated(t *testing.T) {
	for _, err := range []error{limiter.ErrTryAgain, limiter.ErrUnknownOutcome} {
		for _, g := range []int{0, 1} {
			r, groups := newTest(t, 2)
			key := keysOf(r, 1, 1)[0]
			block := boundOp(engine.OpBlockEverywhere, key, "x", time.Hour)
			version := groups[0].SharedVersion
			decide(t, r, setPolicy("p", 1))
			before := version()
			groups[g].fail(err)
			failed := decide(t, r, block)[0]
			if g == 1 {
				require.Equal(t, limiter.ErrTryAgain.Status(), failed.Status)
				require.Equal(t, before, version())
			} else {
				require.Equal(t, outcomeOf(err).Status(), failed.Status)
			}
			groups[g].fail(nil)
			for range 2 {
				require.Equal(t, engine.OK, decide(t, r, block)[0].Status)
				require.Equal(t, before+1, version())
			}
			require.Equal(t, engine.OtherTerms, decide(t, r, boundOp(engine.OpBlock, key, "x", time.Hour))[0].Status)
		}
	}
}

// TestTheIDOfARefusedBlockIsFree checks that a block which the first group refuses leaves its ID to another request, as
// with one group, and that a block of the key alone keeps its ID.
func TestTheIDOfARefusedBlockIsFree(t *testing.T) {
	r, groups := newTest(t, 2)
	key := keysOf(r, 1, 1)[0]
	groups[0].table.SetRules(engine.RulesNetworks)
	decideAll(t, r, blocksOf(r, engine.OpBlockEverywhere, 1000))
	own := boundOp(engine.OpBlock, key, "y", time.Hour)
	require.Equal(t, engine.OK, decide(t, r, own)[0].Status)
	ops := []engine.Op{boundOp(engine.OpBlockEverywhere, key, "x", time.Hour),
		boundOp(engine.OpBlockEverywhere, key, "y", time.Hour)}
	out := make([]engine.Decision, 2)
	require.NoError(t, r.DecideAtomic(ops, out))
	require.Equal(t, engine.BlocksFull, out[0].Status)
	require.Equal(t, engine.OtherTerms, out[1].Status)
	require.Equal(t, engine.OtherTerms, decide(t, r, boundOp(engine.OpBlock, key, "y", 2*time.Hour))[0].Status)
	require.Equal(t, engine.OK, decide(t, r, boundOp(engine.OpBlock, key, "x", time.Hour))[0].Status)
}

// TestAnOldMemberBindsInOneGroup checks that a block is set although a member cannot read the binding of its ID.
func TestAnOldMemberBindsInOneGroup(t *testing.T) {
	r, groups := newTest(t, 2)
	groups[1].fail(limiter.ErrOldMember)
	block := boundOp(engine.OpBlockEverywhere, keysOf(r, 1, 1)[0], "x", time.Hour)
	require.Equal(t, limiter.ErrSomeGroups.Status(), decide(t, r, block)[0].Status, "the group takes no block either")
	require.True(t, groups[0].BlocksEverywhere().Has(block.Key))
}
