package peer

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// callingGroup opens a port that answers calls on shared connections and on others with its group, method and payload.
func callingGroup(t *testing.T, h *Hub, group uint16, id string) *Port {
	p := groupOf(t, h, group, id)
	p.AnswerCalls(func(from Identity, method byte, payload []byte) (byte, []byte) {
		return method, fmt.Appendf(nil, "shared %d:%s:%s", group, from.NodeID, payload)
	})
	return p
}

// TestGroupsAskTogether checks that one message asks the nodes of several groups of a host. A group that cannot answer
// gets an error of its own, and the others their answers.
func TestGroupsAskTogether(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	far.bundlePatience = patience
	var questions []Question
	for g := range uint16(5) {
		questions = append(questions, Question{Port: groupOf(t, near, g, fmt.Sprint("a", g)), To: fmt.Sprint("b", g),
			Method: 7, Payload: fmt.Append(nil, "x", g)})
		if g != 3 {
			callingGroup(t, far, g, fmt.Sprint("b", g))
		}
	}
	questions[1].To = "other"
	answers, err := AskTogether(soon(t), far.Addr().String(), questions)
	require.NoError(t, err)
	require.ErrorContains(t, answers[1].Err, ErrWrongID.Error())
	require.ErrorContains(t, answers[3].Err, ErrNoGroup.Error())
	for _, g := range []int{0, 2, 4} {
		require.Equal(t, Answer{Status: 7, Payload: fmt.Appendf(nil, "shared %d:a%d:x%d", g, g, g)}, answers[g])
	}
	require.EqualValues(t, 1, linkTo(near, far.Addr().String()).next, "one message")
}

// TestAGroupThatHangsDelaysNoBundle checks that a group that does not answer gets no answer into a bundle, and that the
// others answer without it. Its bundles are bounded.
func TestAGroupThatHangsDelaysNoBundle(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	far.bundlePatience = time.Second // the other group answers within this time on a busy machine too
	release := make(chan struct{})
	defer close(release)
	hung := groupOf(t, far, 0, "b0")
	var called atomic.Int32
	hung.AnswerCalls(func(Identity, byte, []byte) (byte, []byte) {
		called.Add(1)
		<-release
		return 0, nil
	})
	callingGroup(t, far, 1, "b1")
	questions := []Question{
		{Port: groupOf(t, near, 0, "a0"), To: "b0"}, {Port: groupOf(t, near, 1, "a1"), To: "b1"},
	}
	for range 2 {
		answers, err := AskTogether(soon(t), far.Addr().String(), questions)
		require.NoError(t, err)
		require.ErrorContains(t, answers[0].Err, errLate.Error())
		require.NoError(t, answers[1].Err)
	}
	require.Eventually(t, func() bool { return called.Load() == 2 }, patience, time.Millisecond)
	hung.requests.Store(maxSharedRequests)
	answers, err := AskTogether(soon(t), far.Addr().String(), questions)
	require.NoError(t, err)
	require.ErrorContains(t, answers[0].Err, errBusy.Error())
	require.NoError(t, answers[1].Err)
	require.EqualValues(t, 2, called.Load())
	hung.requests.Store(2)
}

// TestAnAskerUsesTheSharedConnection checks that an asker calls over the shared connection, and on a connection of its
// group if the other host is too old for that.
func TestAnAskerUsesTheSharedConnection(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	addr := far.Addr().String()
	from, to := groupOf(t, near, 1, "a"), groupOf(t, far, 1, "b")
	asker := NewAsker(from, addr, "b")
	_, _, err := asker.Call(soon(t), 9, nil)
	require.ErrorIs(t, err, ErrNotSent, "the group answers no calls yet")
	to.AnswerCalls(func(from Identity, method byte, payload []byte) (byte, []byte) {
		return method, fmt.Appendf(nil, "shared:%s", payload)
	}, 8)
	for _, method := range []byte{8, 9} {
		status, answer, err := asker.Call(soon(t), method, []byte("x"))
		require.NoError(t, err)
		require.Equal(t, method, status)
		require.Equal(t, "shared:x", string(answer))
	}
	require.Nil(t, asker.current())

	linkTo(near, addr).conn.sharedVersion = bundleVersion - 1
	_, answer, err := asker.Call(soon(t), 9, []byte("x"))
	require.NoError(t, err)
	require.Equal(t, "1:a:cluster1:x", string(answer))
	require.NotNil(t, asker.current())
	_, err = AskTogether(soon(t), addr, []Question{{Port: from, To: "b"}})
	require.ErrorIs(t, err, ErrNotShared)
	asker.Close()
}

// TestVersionOfASharedConnection checks that only the greeting of a shared connection has the version of calls.
func TestVersionOfASharedConnection(t *testing.T) {
	require.EqualValues(t, sharedVersion, newGreeting(SharedService, 0, Identity{}).version)
	for _, s := range []Service{CallService, RaftService} {
		require.EqualValues(t, 1, newGreeting(s, 0, Identity{}).version)
	}
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	from := groupOf(t, near, 1, "a")
	callingGroup(t, far, 1, "b")
	_, _, err := NewAsker(from, far.Addr().String(), "b").Call(soon(t), 1, nil)
	require.NoError(t, err)
	require.EqualValues(t, sharedVersion, linkTo(near, far.Addr().String()).conn.sharedVersion)
}

// TestAnIdleConnectionIsClosed checks that a connection is closed when no call has used it for a time, that a call in
// progress keeps it, and that the next call opens it again.
func TestAnIdleConnectionIsClosed(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	from := groupOf(t, near, 1, "a")
	groupOf(t, far, 1, "b")
	client := NewClient(from, far.Addr().String(), "b")
	defer client.Close()
	call := func() {
		_, answer, err := client.Call(soon(t), 1, []byte("x"))
		require.NoError(t, err)
		require.Equal(t, "1:a:cluster1:x", string(answer))
	}
	client.CloseIdle(0)
	call()
	first := client.current()
	client.CloseIdle(time.Hour)
	require.Same(t, first, client.current())
	_, waiting, ok := first.register()
	require.True(t, ok)
	client.CloseIdle(0)
	require.Same(t, first, client.current(), "a call is in progress")
	clear(first.waiting)
	require.Empty(t, waiting)
	client.CloseIdle(0)
	require.Nil(t, client.current())
	_, _, err := first.call(soon(t), 1, nil)
	require.ErrorIs(t, err, errIdle, "a caller that held the connection opens another")
	call()
	require.NotSame(t, first, client.current())
}

// TestACallRetriesAConnectionThatIsClosedAsIdle closes the connection of a call as idle before the call uses it. The
// call must open another connection. The channel of the client blocks here, so that the test stops the call between
// the two steps.
func TestACallRetriesAConnectionThatIsClosedAsIdle(t *testing.T) {
	near, _ := openHub(t, "")
	far, _ := openHub(t, "")
	from := groupOf(t, near, 1, "a")
	groupOf(t, far, 1, "b")
	client := NewClient(from, far.Addr().String(), "b")
	defer client.Close()
	client.dialing = make(chan struct{})
	called := make(chan error, 1)
	go func() {
		_, _, err := client.Call(soon(t), 1, []byte("x"))
		called <- err
	}()
	client.dialing <- struct{}{}
	require.Eventually(t, func() bool { return client.current() != nil }, patience, time.Millisecond)
	client.CloseIdle(0)
	require.Nil(t, client.current())
	<-client.dialing // the call continues with the closed connection
	select {
	case client.dialing <- struct{}{}: // the call opens another
		<-client.dialing
		require.NoError(t, <-called)
	case err := <-called:
		require.NoError(t, err)
		require.Fail(t, "the call used a closed connection")
	}
}

// TestMalformedBundles checks that a bundle with a wrong length, an empty part or too many parts is refused.
func TestMalformedBundles(t *testing.T) {
	good := appendPart(appendPart(nil, []byte("one")), []byte("two"))
	parts, err := readParts(good)
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("one"), []byte("two")}, parts)
	for n := range good {
		if n != 0 && n != len(good)/2 {
			_, err := readParts(good[:n])
			require.ErrorIs(t, err, errEnvelope, n)
		}
	}
	_, err = readParts(appendPart(nil, nil))
	require.ErrorIs(t, err, errEnvelope)
	var many []byte
	for range maxBundle + 1 {
		many = appendPart(many, []byte("x"))
	}
	_, err = readParts(many)
	require.ErrorIs(t, err, errEnvelope)
}
