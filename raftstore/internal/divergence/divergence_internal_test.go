package divergence

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOnlyAMajorityJudges checks that a node continues or stops for good only if more than half of all voters have
// the same history.
func TestOnlyAMajorityJudges(t *testing.T) {
	const mine = 7
	for name, c := range map[string]struct {
		voters    int
		histories map[string]uint64
		want      pollOutcome
	}{
		"all agree":                    {3, map[string]uint64{"a": 7, "b": 7, "c": 7}, inMajority},
		"one other is odd":             {3, map[string]uint64{"a": 7, "b": 7, "c": 8}, inMajority},
		"this one is odd":              {3, map[string]uint64{"a": 7, "b": 8, "c": 8}, inMinority},
		"one to one, the third silent": {3, map[string]uint64{"a": 7, "b": 8}, undecided},
		"three histories":              {3, map[string]uint64{"a": 7, "b": 8, "c": 9}, undecided},
		"two nodes":                    {2, map[string]uint64{"a": 7, "b": 8}, undecided},
		"two to two":                   {4, map[string]uint64{"a": 7, "b": 7, "c": 8, "d": 8}, undecided},
		"two to two of five":           {5, map[string]uint64{"a": 7, "b": 7, "c": 8, "d": 8}, undecided},
		"three to two":                 {5, map[string]uint64{"a": 7, "b": 7, "c": 8, "d": 8, "e": 8}, inMinority},
		"a learner against all voters": {3, map[string]uint64{"a": 8, "b": 8}, inMinority},
		"nobody answers":               {3, nil, undecided},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.want, tally(1, mine, c.voters, c.histories).outcome)
		})
	}
}
