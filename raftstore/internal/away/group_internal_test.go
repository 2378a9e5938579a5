package away

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/internal/calls"
)

// oneHangs is a network in which the host "hangs" never answers.
type oneHangs struct{}

func (oneHangs) Call(ctx context.Context, addr string, _ []byte) (status byte, answer []byte, err error) {
	if addr == "hangs" {
		<-ctx.Done()
		return 0, nil, ctx.Err()
	}
	return calls.Answered, []byte(addr), ctx.Err()
}

// TestAReadAsksTheNextNode checks that a node which does not answer leaves time to ask the others, because a read may
// be repeated.
func TestAReadAsksTheNextNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Group{config: Config{
			MaxAge: time.Second, Network: oneHangs{}, Founders: func() []string { return []string{"hangs", "answers"} },
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		status, answer, err := g.readAny(ctx, nil)
		require.NoError(t, err)
		require.Equal(t, calls.Answered, status)
		require.Equal(t, "answers", string(answer))
	})
}

// TestACallerBehindOthersReadsAtOnce checks that a caller whose position is not that of the callers that wait already
// does not wait with them.
func TestACallerBehindOthersReadsAtOnce(t *testing.T) {
	life, end := context.WithCancel(t.Context())
	var tasks sync.WaitGroup
	g := &Group{config: Config{Life: life, Tasks: &tasks}}
	waits := g.newEvents(engine.EventsPosition{Last: 6})
	require.Equal(t, waits, g.newEvents(engine.EventsPosition{Last: 6}), "one watch for both")
	select {
	case <-g.newEvents(engine.EventsPosition{Last: 5}):
	default:
		require.Fail(t, "event 6 is there")
	}
	select {
	case <-waits:
		require.Fail(t, "nothing is newer than event 6")
	default:
	}
	end()
	tasks.Wait()
}
