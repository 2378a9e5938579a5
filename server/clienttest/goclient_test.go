package clienttest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goClient is a Go client library, used through its function for any command.
type goClient interface {
	do(args []string) (any, error)
	// pipeline sends the commands as a pipeline and returns their replies.
	pipeline(commands [][]string) ([]any, error)
	// transaction sends the commands between MULTI and EXEC.
	transaction(commands [][]string) ([]any, error)
	close()
}

// dialer returns a client with default settings. An empty password means none.
type dialer func(t *testing.T, addr, password string) (goClient, error)

// testGoClient runs the tests that every Go client must pass. complaints returns the lines that the library has logged
// since the last call. It is nil for a library that logs nothing.
func testGoClient(t *testing.T, dial dialer, complaints func() []string) {
	quiet := func(t *testing.T) {
		if complaints != nil {
			assert.Empty(t, complaints(), "the client's log")
		}
	}
	t.Run("Restart", func(t *testing.T) {
		server := startWeir(t)
		client, err := dial(t, server.addr, "")
		require.NoError(t, err)
		defer client.close()
		speak(t, client)
		quiet(t)
		server.restart()
		require.Eventually(t, func() bool {
			answer, err := client.do([]string{"PING"})
			return err == nil && shown(answer) == `"PONG"`
		}, testWait, testWait/1000, "the client does not find the server again")
		if complaints != nil {
			complaints() // lines about the lost connection are allowed
		}
		speak(t, client)
		quiet(t)
	})
	t.Run("Password", func(t *testing.T) {
		server := startWeir(t, "--requirepass", password)
		client, err := dial(t, server.addr, password)
		require.NoError(t, err)
		defer client.close()
		speak(t, client)
		quiet(t)
		assert.ErrorContains(t, refused(t, dial, server.addr, "wrong"), "WRONGPASS")
		assert.ErrorContains(t, refused(t, dial, server.addr, ""), "NOAUTH")
	})
}

// refused returns the error that a client with a wrong password gets: when it connects, or for its first command.
func refused(t *testing.T, dial dialer, addr, password string) error {
	client, err := dial(t, addr, password)
	if err != nil {
		return err
	}
	defer client.close()
	_, err = client.do([]string{"RL.TOKENBUCKET", "refused", "1", "1"})
	return err
}

// speak runs the vectors on a server that has just started.
func speak(t *testing.T, client goClient) {
	t.Helper()
	all := loadVectors(t)
	for _, v := range all.Vectors {
		got, err := client.do(v.Send)
		require.Empty(t, v.check(got, err))
	}

	commands := make([][]string, all.Pipeline.Times)
	for i := range commands {
		commands[i] = all.Pipeline.Send
	}
	replies, err := client.pipeline(commands)
	require.NoError(t, err)
	require.Len(t, replies, len(commands))
	admitted := 0
	for _, reply := range replies {
		if reply.([]any)[0] == int64(1) {
			admitted++
		}
	}
	require.Equal(t, all.Pipeline.Admitted, admitted, "of %d pipelined", len(commands))

	commands = nil
	for _, v := range all.Transaction {
		commands = append(commands, v.Send)
	}
	replies, err = client.transaction(commands)
	require.NoError(t, err)
	require.Len(t, replies, len(commands))
	for i, v := range all.Transaction {
		require.Empty(t, v.check(replies[i], nil))
	}
}

// anys converts arguments for functions that take ...any.
func anys(args []string) []any {
	list := make([]any, len(args))
	for i, arg := range args {
		list[i] = arg
	}
	return list
}
