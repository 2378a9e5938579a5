package servers

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// startFake starts a server that answers every command with one reply, until the test ends.
func startFake(t *testing.T, reply string) (addr string) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 1024))
			_, _ = conn.Write([]byte(reply))
			_ = conn.Close()
		}
	}()
	return ln.Addr().String()
}

func TestRole(t *testing.T) {
	for reply, want := range map[string]struct {
		followers int
		leads     bool
	}{
		"*3\r\n$6\r\nmaster\r\n:9\r\n*2\r\n*0\r\n*0\r\n":                             {2, true},
		"*3\r\n$6\r\nmaster\r\n:9\r\n*0\r\n":                                         {0, true},
		"*5\r\n$5\r\nslave\r\n$9\r\n127.0.0.1\r\n:6380\r\n$9\r\nconnected\r\n:9\r\n": {0, false},
		"-LOADING\r\n": {0, false},
	} {
		followers, leads := roleOf(startFake(t, reply))
		require.Equal(t, want.leads, leads, reply)
		require.Equal(t, want.followers, followers, reply)
	}
	_, leads := roleOf("127.0.0.1:1")
	require.False(t, leads)
}

func TestClusterNodesAgreeOnWhoTheyAre(t *testing.T) {
	c := &Cluster{Binary: "weir", Dir: "/data", Size: 3, Durability: "os"}
	rafts := []string{"127.0.0.1:7", "127.0.0.1:8", "127.0.0.1:9"}
	require.Equal(t, []string{"serve", "--listen", "127.0.0.1:5", "--http", "", "--data-dir",
		filepath.Join("/data", "n2"),
		"--node-id", "n2", "--raft-addr", "127.0.0.1:8", "--join", "127.0.0.1:7,127.0.0.1:8,127.0.0.1:9", "--expect",
		"3", "--durability", "os"},
		c.node(1, "127.0.0.1:5", rafts).Args)
}
