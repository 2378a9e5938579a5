package server

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/commands"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/resp/resptest"
	"github.com/weir-project/weir/server/servertest"
)

// sendLongReply sends a command whose reply is longer than the connection's buffer.
func sendLongReply(p *servertest.Peer) {
	args := make([]string, resp.MaxArgs-2)
	for i := range args {
		args[i] = strings.Repeat("k", 500)
	}
	p.Send(resptest.Multibulk(append([]string{"PUBSUB", "NUMSUB"}, args...)...))
}

func TestLongRepliesShareBoundedMemory(t *testing.T) {
	srv := startWire(t, Config{}, nil)
	p := srv.dial(t)
	sendLongReply(p)
	p.Send("PING\r\nQUIT\r\n")
	assert.Contains(t, p.ExpectEnd(), pong)
	require.Eventually(t, func() bool { return srv.connCount() == 0 }, servertest.Patience, time.Millisecond)
	assert.Zero(t, srv.Held.Used.Load())

	srv.Held.Used.Store(commands.MaxHeldBytes)
	p = srv.dial(t)
	sendLongReply(p)
	assert.Empty(t, p.ExpectEnd())
	assert.EqualValues(t, commands.MaxHeldBytes, srv.Held.Used.Load())
	srv.answers(t)
}

func TestPushedMessagesShareBoundedMemory(t *testing.T) {
	srv := startWire(t, Config{}, nil)
	p, c := srv.dialOne(t)
	for range 100 {
		assert.True(t, c.Push([]byte("+hello\r\n")))
	}
	p.Expect(strings.Repeat("+hello\r\n", 100))
	assert.Zero(t, srv.Held.Used.Load())

	srv.Held.Used.Store(commands.MaxHeldBytes)
	assert.False(t, c.Push([]byte("+hello\r\n")))
	assert.Empty(t, p.ExpectEnd())
	assert.EqualValues(t, commands.MaxHeldBytes, srv.Held.Used.Load())
}

func TestPushQueueGivesBackWhatItHeld(t *testing.T) {
	var held commands.Budget
	for name, empty := range map[string]func(*pushQueue){
		"drain": func(q *pushQueue) { q.drain(nil) },
		"swap":  func(q *pushQueue) { q.swap(nil) },
		"close": func(q *pushQueue) { q.close() },
	} {
		q := pushQueue{held: &held}
		require.True(t, q.add([]byte("+hello\r\n"), 100, func() {}))
		assert.EqualValues(t, 8, held.Used.Load())
		empty(&q)
		assert.Zero(t, held.Used.Load(), name)
	}
}
