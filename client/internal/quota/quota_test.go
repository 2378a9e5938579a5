package quota

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/client"
	"github.com/weir-project/weir/httpfields"
)

// TestOneQuestionAtATime checks that denials without end ask weir for no reason while a question is open. A question
// would panic, because there is no client.
func TestOneQuestionAtATime(t *testing.T) {
	var teller Teller
	q := client.Request{Rule: client.Quota(client.Forever, "", 2), Key: "k"}
	d := client.Decision{RetryAfter: client.Never, Limit: 2, Source: client.FromServer}
	teller.asking.Store(true)
	require.Equal(t, httpfields.NotKnown, teller.Of(t.Context(), "n", 0, &q, &d).Never)
	teller.asking.Store(false)
	require.Panics(t, func() { teller.Of(t.Context(), "n", 0, &q, &d) })
	require.False(t, teller.asking.Load(), "the next request may ask")
}
