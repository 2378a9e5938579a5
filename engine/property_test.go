package engine_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

const (
	// modelOps is the default number of random operations, over all algorithms. WEIRTEST_MODEL_OPS sets another
	// number.
	modelOps = 2_500_000
	// episodeOps is the length of one history. It is short enough to shrink and to read.
	episodeOps = 250
)

// TestModel compares every answer of the engine with the reference model over random histories. WEIRTEST_MODEL_SEED
// selects other histories.
func TestModel(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	ops, seed := fromEnv(t, "WEIRTEST_MODEL_OPS", modelOps), fromEnv(t, "WEIRTEST_MODEL_SEED", 1)
	algorithms := append([]engine.Algorithm{engine.NoAlgorithm, engine.Counter}, everyAlgorithm...)
	episodes := ops / len(algorithms) / episodeOps
	for _, a := range algorithms {
		name := a.String()
		if a == engine.NoAlgorithm {
			name = "all"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := range episodes {
				runEpisode(t, a, rand.New(rand.NewPCG(uint64(seed), uint64(a)<<32|uint64(i))))
			}
		})
	}
}

func fromEnv(t *testing.T, name string, otherwise int) int {
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	n, err := strconv.Atoi(s)
	require.NoError(t, err, name)
	return n
}

func runEpisode(t *testing.T, a engine.Algorithm, rng *rand.Rand) {
	keys := 2
	if a == engine.NoAlgorithm {
		keys = 12
	}
	g := newGenerator(rng, a, keys)
	p := newPair(g.lifetimeNs)
	var history []step
	for range episodeOps {
		s := g.next()
		history = append(history, s)
		answer, diff := p.do(s)
		if diff != "" {
			t.Fatalf("the engine and the model differ:\n%s", trace(shrink(history, g.lifetimeNs), g.lifetimeNs))
		}
		g.saw(answer)
	}
}

// pair is an engine and a model that get the same operations.
type pair struct {
	table *engine.Table
	model *model
}

func newPair(idLifetimeNs int64) pair {
	return pair{
		engine.NewTable(engine.Options{Shards: 1, IDLifetimeNs: idLifetimeNs}),
		newModel(idLifetimeNs),
	}
}

// do runs one step on both, and describes the difference.
func (p pair) do(s step) (answer engine.Decision, diff string) {
	want := p.model.do(s.at, &s.op)
	got := decideOne(p.table, s)
	if got.Status == engine.OtherTerms {
		got = engine.Decision{Status: engine.OtherTerms} // the rest says what differs
	}
	if got != want {
		return got, fmt.Sprintf("engine %+v\n         model  %+v", got, want)
	}
	if n, m := p.table.Len(s.at), p.model.len(s.at); n != m {
		return got, fmt.Sprintf("engine has %d keys, model %d", n, m)
	}
	gotInfo, gotOK := p.table.Inspect(s.at, s.op.Key)
	wantInfo, wantOK := p.model.inspect(s.at, s.op.Key)
	gotInfo.Bytes = 0
	if gotOK != wantOK || !reflect.DeepEqual(gotInfo, wantInfo) {
		return got, fmt.Sprintf("engine %v %+v\n         model  %v %+v", gotOK, gotInfo, wantOK, wantInfo)
	}
	return got, ""
}

func decideOne(t *engine.Table, s step) engine.Decision {
	var out [1]engine.Decision
	t.Decide(s.at, []engine.Op{s.op}, out[:])
	return out[0]
}

// shrink drops the steps of a failing history that the failure does not need.
func shrink(history []step, idLifetimeNs int64) []step {
	for size := len(history) / 2; size > 0; size /= 2 {
		for i := len(history) - size; i >= 0; i-- {
			if i+size > len(history) {
				continue
			}
			shorter := append(append([]step(nil), history[:i]...), history[i+size:]...)
			if at, failed := fails(shorter, idLifetimeNs); failed {
				history = shorter[:at+1]
			}
		}
	}
	return history
}

// fails returns the first step of a history on which engine and model differ.
func fails(history []step, idLifetimeNs int64) (at int, failed bool) {
	p := newPair(idLifetimeNs)
	for i, s := range history {
		if _, diff := p.do(s); diff != "" {
			return i, true
		}
	}
	return 0, false
}

// trace returns a history with its answers, the last of which differs.
func trace(history []step, idLifetimeNs int64) string {
	var b strings.Builder
	p := newPair(idLifetimeNs)
	before := history[0].at.NowNs
	for _, s := range history {
		answer, diff := p.do(s)
		fmt.Fprintf(&b, "  +%d ns (at %+v): %s\n         = %+v\n", s.at.NowNs-before, s.at, describe(s.op), answer)
		if diff != "" {
			fmt.Fprintf(&b, "         %s\n", diff)
		}
		before = s.at.NowNs
	}
	return b.String()
}

var opNames = []string{"take", "release", "renew", "refund", "reset", "block", "unblock", "incr", "forget", "check",
	"policy", "script", "reserve", "commit", "cancel", "block everywhere", "forgive"}

func describe(op engine.Op) string {
	s := fmt.Sprintf("%s %x cost %d", opNames[op.Code], op.Key, op.Cost)
	if op.Code == engine.OpTake {
		l := op.Limit
		s += fmt.Sprintf(" %v max %d rate %v window %d mode %d strikes %d", l.Algorithm, l.Max, l.Rate, l.WindowNs,
			l.Mode, l.Strikes)
		for i := range l.Steps.Len() {
			s += fmt.Sprintf(" %v", l.Steps.At(i))
		}
	}
	s += fmt.Sprintf(" partial %v dry %v wait %d ttl %d id %q text %q", op.Partial, op.Dry, op.WaitNs,
		op.TTLNs, op.ID, op.Text)
	if op.Calendar != nil {
		s += fmt.Sprintf(" calendar %+v", *op.Calendar)
	}
	if op.Incr != nil {
		s += fmt.Sprintf(" incr %+v", *op.Incr)
	}
	return s
}
