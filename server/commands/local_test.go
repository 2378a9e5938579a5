package commands

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/resp"
)

// TestAReplyIsTheSameWithoutAConnection sends the same commands to two equal servers: to one from a client of either
// protocol, to the other from a caller in its process. The values of the replies must not differ.
func TestAReplyIsTheSameWithoutAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(2, 1))
		remote, local := visibleFrom(t, true), visibleFrom(t, true)
		for range 4000 {
			requireSameValue(t, remote, local, anyCommand(random, remote.sess.srv.table)...)
			if remote.sess.Closing || remote.sess.Mute != MuteNone {
				remote, local = sameServer(t, remote), sameServer(t, local)
			}
		}
		remote, local = sameServer(t, remote).as("boss", "x"), sameServer(t, local).as("boss", "x")
		for _, line := range []string{"HELLO 2", "HELLO 3"} {
			requireSameValue(t, remote, local, split(line)...)
			for _, line := range []string{"COMMAND", "COMMAND DOCS", "COMMAND INFO get nope", "CLIENT HELP", "ACL LIST",
				"ACL GETUSER app", "CLUSTER NODES", "CLUSTER SHARDS", "ROLE", "WEIR.CLUSTER STATUS", "RL.POLICY LIST",
				"RL.EXPLAIN RL.CHECK p theirs", "HGETALL theirs", "KEYS theirs", "SCAN 0 MATCH theirs COUNT 100",
				"MULTI", "RL.INSPECT theirs", "NOPE", "RL.FIXED theirs 1d 3", "EXEC",
				"MULTI", "RL.INSPECT theirs", "RL.FIXED theirs 1d 3", "RL.FIXED value 1d 3", "EXEC"} {
				requireSameValue(t, remote, local, split(line)...)
			}
		}
	})
}

// requireSameValue sends a command from remote as a client, and from local as a caller in the process.
func requireSameValue(t *testing.T, remote, local *testClient, send ...string) {
	t.Helper()
	var want any
	if raw := remote.raw(send...); raw != "" {
		r, _, err := readReply(raw)
		require.NoError(t, err)
		want = r.value()
	}
	var reply resp.Values
	local.sess.Writer = &reply
	local.raw(send...)
	got, err := reply.Value()
	if err != nil {
		got = err
	}
	require.Equal(t, want, got, "%q", send)
}

// value returns the reply as resp.Values.Value does, an error reply included.
func (r reply) value() any {
	switch r.kind {
	case '_':
		return nil
	case '-':
		return resp.Error(r.text)
	case ':':
		n, _ := strconv.ParseInt(r.text, 10, 64) // readReply has parsed it
		return n
	case '=':
		return strings.TrimPrefix(r.text, "txt:")
	case '+', '$':
		return r.text
	}
	values := []any{}
	for _, item := range r.items {
		values = append(values, item.value())
	}
	return values
}
