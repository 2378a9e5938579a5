package store

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnswerDenied checks that only a denial by a limit counts as denied. An answer with a status or without a limit
// does not.
func TestAnswerDenied(t *testing.T) {
	const part = 3 << LimitBits
	for want, answers := range map[bool][]Answer{
		true:  {{0, 0, 5, 5, 1}, {0, 0, 5, 5, part | 1}},
		false: {{1, 0, 0, 5, 1}, {0, 0, 0, 0, 0}, {0, 0, 0, 0, part}, {0, 0, 0, 0, -1<<63 | 2}},
	} {
		for _, a := range answers {
			require.Equal(t, want, a.denied(), "%v", a)
		}
	}
}
