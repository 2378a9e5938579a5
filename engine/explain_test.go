package engine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

// TestExplainAnswersAsDecideWould checks that Explain ahead of time gives the same answer as Decide at that time.
// TestMetamorphic checks that it leaves no trace.
func TestExplainAnswersAsDecideWould(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rng, asked := seeded(seed), hashTable(8)
			var blocks []block
			for _, b := range someBlocks(seed, 20, 64) {
				blocks = append(blocks, b)
				asked.Decide(b.at, b.ops, make([]engine.Decision, len(b.ops)))
				twin := hashTable(2)
				for _, b := range blocks {
					twin.Decide(b.at, b.ops, make([]engine.Decision, len(b.ops)))
				}
				at := b.at
				at.NowNs += rng.Int64N(1 << rng.IntN(45))
				for _, op := range slices.Clone(b.ops) {
					if op.Code != engine.OpTake && op.Code != engine.OpCheck {
						continue
					}
					op.Dry = true
					got, want := make([]engine.Decision, 1), make([]engine.Decision, 1)
					asked.Explain(at, []engine.Op{op}, got)
					twin.Decide(at, []engine.Op{op}, want)
					require.Equal(t, want, got, "%+v", op)
				}
			}
		})
	}
}
