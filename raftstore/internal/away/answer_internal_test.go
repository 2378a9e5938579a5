package away

import (
	"bytes"
	"encoding/gob"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/host"
)

// ofDenials is a replica that knows one denied key, as a leader or not.
type ofDenials struct {
	Replica
	leads bool
}

func (r ofDenials) ReadIndex() error                       { return nil }
func (r ofDenials) Led() (host.Led, bool)                  { return host.Led{}, r.leads }
func (r ofDenials) Top(engine.Verdict, int) []engine.Heavy { return []engine.Heavy{{Units: 3}} }

// TestOnlyTheLeaderTellsDenials checks that no other replica answers which keys were denied, because only the leader
// knows.
func TestOnlyTheLeaderTellsDenials(t *testing.T) {
	ask := func(v engine.Verdict, leads bool) error {
		var b bytes.Buffer
		require.NoError(t, gob.NewEncoder(&b).Encode(&question{What: askTop, Verdict: v, Count: 1}))
		status, said := Answer(1, ofDenials{leads: leads}, nil, b.Bytes())
		return calls.OutcomeOf(status, said)
	}
	require.NoError(t, ask(engine.Denied, true))
	require.ErrorIs(t, ask(engine.Denied, false), limiter.ErrTryAgain) // of another replica
	require.NoError(t, ask(engine.Admitted, true))
	require.NoError(t, ask(engine.Admitted, false))
}
