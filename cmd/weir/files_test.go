package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/listener"
	"github.com/weir-project/weir/raftstore/peer"
	"github.com/weir-project/weir/server/envoyrls"
	"github.com/weir-project/weir/server/httpapi"
)

func TestMaxClients(t *testing.T) {
	for files, want := range map[uint64]int{spareFiles + 1: 1, spareFiles + 1000: 1000, 1 << 63: 1 << 30} {
		room, err := listener.MaxClients(files, spareFiles)
		require.NoError(t, err)
		require.Equal(t, want, room)
	}
	_, err := listener.MaxClients(1000, 2000)
	require.ErrorIs(t, err, listener.ErrFewFiles)
	require.ErrorContains(t, err, "the limit is 1000, and these ports alone need 2000")
}

// TestConnectionsLeaveFilesToTheStore checks that the store can open its files under any number of connections. A store
// that cannot open a file ends the process.
func TestConnectionsLeaveFilesToTheStore(t *testing.T) {
	const room = 20
	limited := fmt.Sprintf(`ulimit -n %d; exec "$0" "$@"`, spareFiles+room)
	p := startCommand(t, exec.Command("sh", "-c", limited, binary))
	require.Contains(t, p.output(), fmt.Sprintf(`"max_clients":%d`, room))
	for range spareFiles + 2*room {
		for addr, hello := range map[string]string{p.addr: "PING\r\n",
			p.web[len("http://"):]: "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"} {
			nc, err := net.Dial("tcp", addr)
			require.NoError(t, err)
			defer nc.Close()
			_, _ = io.WriteString(nc, hello)
		}
	}
	probe := http.Client{Timeout: patience}
	reply, err := probe.Get(p.web + "/livez")
	require.NoError(t, err, "probes must still be answered")
	require.NoError(t, reply.Body.Close())
	require.NotContains(t, p.output(), "too many open files")
	p.stop() // saving makes the store open new files
	require.Contains(t, p.output(), `"msg":"stopped"`)
}

// TestPortsTakeFiles checks that the file descriptors of HTTP, RLS and the inter-node port are not available to
// clients.
func TestPortsTakeFiles(t *testing.T) {
	for _, c := range []struct {
		flags []string
		taken int
	}{
		{nil, 0},
		{[]string{"--rls=127.0.0.1:0"}, envoyrls.MaxConns},
		{[]string{"--http-check=open"}, httpapi.CheckMaxConns - httpapi.MaxConns},
		{[]string{"--http-check=open", "--http="}, 0},
		{[]string{"--node-id=a"}, peer.MaxHandshakes + peerFiles},
		{[]string{"--rls=127.0.0.1:0", "--node-id=a"}, envoyrls.MaxConns + peer.MaxHandshakes + peerFiles},
	} {
		s, err := parse(c.flags...)
		require.NoError(t, err)
		require.EqualValues(t, spareFiles+c.taken, s.besidesClients(), c.flags)
	}
}

// TestTheErrorOfTooFewFilesHasTheNumbers checks that the error about too few file descriptors has correct numbers,
// whatever ports are open.
func TestTheErrorOfTooFewFilesHasTheNumbers(t *testing.T) {
	const serve = `ulimit -n 600; exec "$0" serve --listen=127.0.0.1:0 --http=127.0.0.1:0 --http-check=open --data-dir=`
	out, err := exec.Command("sh", "-c", serve, binary).CombinedOutput()
	require.Error(t, err)
	need := spareFiles + httpapi.CheckMaxConns - httpapi.MaxConns
	require.Contains(t, string(out), fmt.Sprintf("the limit is 600, and these ports alone need %d", need))
}
