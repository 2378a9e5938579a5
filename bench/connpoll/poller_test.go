package connpoll

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pollersOf returns a poller of each kind.
var pollersOf = map[string]func([]net.Conn) (Poller, error){
	"of this system": New,
	"buffered":       func(conns []net.Conn) (Poller, error) { return newBuffered(conns), nil },
}

// pollerOfPeers polls connections to peers over TCP.
func pollerOfPeers(t *testing.T, count int, of func([]net.Conn) (Poller, error)) (w Poller, peers []net.Conn) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	var conns []net.Conn
	for range count {
		conn, err := net.Dial("tcp", ln.Addr().String())
		require.NoError(t, err)
		peer, err := ln.Accept()
		require.NoError(t, err)
		t.Cleanup(func() { _ = peer.Close() })
		conns, peers = append(conns, conn), append(peers, peer)
	}
	w, err = of(conns)
	require.NoError(t, err)
	return w, peers
}

// await waits until a connection has input.
func await(t *testing.T, w Poller) []int {
	for range 1000 {
		ready, err := w.Wait(longestWrite)
		require.NoError(t, err)
		if len(ready) > 0 {
			return ready
		}
	}
	require.Fail(t, "nothing comes")
	return nil
}

func TestPollersTellWhoHasInput(t *testing.T) {
	for name, of := range pollersOf {
		t.Run(name, func(t *testing.T) {
			w, peers := pollerOfPeers(t, 3, of)
			ready, err := w.Wait(0)
			require.NoError(t, err)
			require.Empty(t, ready)
			buf := make([]byte, 3)
			_, err = w.Read(1, buf)
			require.ErrorIs(t, err, ErrNotYet)

			_, err = io.WriteString(peers[1], "hello")
			require.NoError(t, err)
			require.Equal(t, []int{1}, await(t, w))
			n, err := w.Read(1, buf)
			require.NoError(t, err)
			require.Equal(t, "hel", string(buf[:n]))
			require.Equal(t, []int{1}, await(t, w), "it has more")
			n, err = w.Read(1, buf)
			require.NoError(t, err)
			require.Equal(t, "lo", string(buf[:n]))
			ready, err = w.Wait(0)
			require.NoError(t, err)
			require.Empty(t, ready)

			require.NoError(t, peers[2].Close())
			require.Equal(t, []int{2}, await(t, w))
			_, err = w.Read(2, buf)
			require.ErrorIs(t, err, io.EOF)
			require.NoError(t, w.Close())
			_, err = peers[0].Read(buf)
			require.ErrorIs(t, err, io.EOF)
		})
	}
}

func TestPollersWriteWhatThePeerTakes(t *testing.T) {
	for name, of := range pollersOf {
		t.Run(name, func(t *testing.T) {
			w, peers := pollerOfPeers(t, 1, of)
			sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
			rest := sent
			for {
				n, err := w.Write(0, rest)
				require.NoError(t, err)
				if rest = rest[n:]; n == 0 {
					break
				}
			}
			require.NotEmpty(t, rest, "the peer reads nothing")
			got := make(chan []byte, 1)
			go func() {
				all, _ := io.ReadAll(peers[0])
				got <- all
			}()
			for len(rest) > 0 {
				n, err := w.Write(0, rest)
				require.NoError(t, err)
				rest = rest[n:]
			}
			require.NoError(t, w.Close())
			require.True(t, bytes.Equal(sent, <-got))
		})
	}
}

func TestPollersWaitAsLongAsTold(t *testing.T) {
	for name, of := range pollersOf {
		t.Run(name, func(t *testing.T) {
			w, _ := pollerOfPeers(t, 1, of)
			started, waits := time.Now(), 0
			for ; time.Since(started) < longestWrite; waits++ {
				ready, err := w.Wait(longestWrite - time.Since(started))
				require.NoError(t, err)
				require.Empty(t, ready)
			}
			require.Less(t, waits, 100, "they seldom return early")
			require.NoError(t, w.Close())
		})
	}
}
