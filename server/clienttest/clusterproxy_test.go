package clienttest

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testLostReply closes the connection after a command was executed and before its reply arrives. Some clients then
// resend the command. With an ID the command counts once, also if the caller resends it.
func testLostReply(t *testing.T, kind clientKind) {
	lossy := &lossyNetwork{t: t}
	// The long heartbeat prevents an election on a slow machine, which would lose further replies.
	c := startCluster(t, lossy.inFrontOf, "--raft-heartbeat=2s")
	seeds := c.addrs(nodeIDs...)
	for i := range seeds {
		seeds[i] = lossy.way[seeds[i]]
	}
	client := kind.dial(t, seeds)
	defer client.close()

	without := int64(1)
	if kind.resends {
		without = 2
	}
	for _, lost := range []struct {
		key  string
		more []string
		used int64
	}{
		{"with-id", []string{"ID", "the same"}, 1},
		{"without", nil, without},
	} {
		require.NoError(t, client.send([][]string{take("other")})[0].err)
		command := take(lost.key, lost.more...)
		lossy.lose(lost.key)
		a := client.send([][]string{command})[0]
		require.Nil(t, lossy.pending.Load(), "no reply was lost")
		if kind.resends {
			require.NoError(t, a.err, "the client does not send again")
			require.Equal(t, most-lost.used, a.numbers()[1])
		} else {
			require.Error(t, a.err, "the client sends again")
		}
		assert.Equal(t, most-lost.used, c.left(lost.key), lost.key)
	}

	// The caller resends the command with the ID, and gets the same decision.
	until(t, "the client does not find the cluster again", func() bool {
		a := client.send([][]string{take("with-id", "ID", "the same")})[0]
		if a.err == nil {
			require.Equal(t, most-1, a.numbers()[1])
		}
		return a.err == nil
	})
	assert.Equal(t, most-1, c.left("with-id"))
	kind.quiet(t, true)
}

// lossyNetwork has a proxy before each node. A proxy can lose a reply, and then closes the connection.
type lossyNetwork struct {
	t       *testing.T
	way     map[string]string      // the address of a node's proxy, by the address of the node
	pending atomic.Pointer[string] // the argument of lose, until a command has it
}

// lose loses the reply to the next command with this argument.
func (n *lossyNetwork) lose(argument string) { n.pending.Store(&argument) }

// inFrontOf starts a proxy before the node that listens on an address, and returns the address of the proxy.
func (n *lossyNetwork) inFrontOf(listen string) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(n.t, err)
	var all sync.WaitGroup
	n.t.Cleanup(func() {
		_ = ln.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			client, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { n.carry(client, listen) })
		}
	})
	if n.way == nil {
		n.way = map[string]string{}
	}
	n.way[listen] = ln.Addr().String()
	return n.way[listen]
}

// carry forwards one connection until either side ends it.
func (n *lossyNetwork) carry(client net.Conn, listen string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", listen)
	if err != nil {
		return
	}
	var loses atomic.Bool
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(writerFunc(func(b []byte) (int, error) {
			if loses.Load() {
				return 0, net.ErrClosed
			}
			return client.Write(b)
		}), server)
		_ = client.Close()
	})
	_, _ = io.Copy(writerFunc(func(b []byte) (int, error) {
		if lost := n.pending.Load(); lost != nil && bytes.Contains(b, []byte("\r\n"+*lost+"\r\n")) &&
			n.pending.CompareAndSwap(lost, nil) {
			loses.Store(true)
		}
		return server.Write(b)
	}), client)
	_ = server.Close()
	back.Wait()
}

// writerFunc is a function as an io.Writer.
type writerFunc func(b []byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
