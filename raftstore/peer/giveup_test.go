package peer

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestACallerThatGivesUpEndsNoConnection checks that a call or message whose caller gives up leaves the connection to
// the others, because the other side is not late.
func TestACallerThatGivesUpEndsNoConnection(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	from, to := groupOf(t, near, 0, "a"), groupOf(t, far, 0, "b")
	asked := make(chan struct{})
	to.AnswerShared(func(_ byte, body []byte, closed <-chan struct{}) ([]byte, error) {
		if len(body) > 0 {
			asked <- struct{}{}
			<-closed
		}
		return nil, nil
	})
	slow := serving(t, func(_ Identity, method byte, _ []byte) (byte, []byte) {
		if method == 1 {
			asked <- struct{}{}
			<-t.Context().Done() // the cleanup of the port waits for this answer
		}
		return method, nil
	}, 2)
	caller, _ := open(t, "a", "one", "secret")
	client := NewClient(caller, slow.Addr().String(), "")
	t.Cleanup(client.Close)
	_, _, err := client.Call(soon(t), 2, nil)
	require.NoError(t, err)
	m := Message{Addr: far.Addr().String(), To: "b"}
	_, err = from.AskShared(soon(t), m)
	require.NoError(t, err)
	shared, own := linkTo(near, m.Addr), client.link
	m.Body = []byte("no answer")
	for _, ask := range []func(context.Context) error{
		func(ctx context.Context) error { _, err := from.AskShared(ctx, m); return err },
		func(ctx context.Context) error { _, _, err := client.Call(ctx, 1, nil); return err },
	} {
		ctx, giveUp := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- ask(ctx) }()
		<-asked
		giveUp()
		require.ErrorIs(t, <-ended, ErrNoAnswer)
	}
	_, _, err = client.Call(soon(t), 2, nil)
	require.NoError(t, err)
	m.Body = nil
	_, err = from.AskShared(soon(t), m)
	require.NoError(t, err)
	require.Same(t, shared, linkTo(near, m.Addr))
	require.Same(t, own, client.link)
	require.Empty(t, own.waiting)
}
