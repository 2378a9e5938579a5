package freeport

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPortsAreTakenOnce(t *testing.T) {
	addrs := append(Addrs(t, 20), Addrs(t, 20)...)
	seen := map[string]bool{}
	for _, addr := range addrs {
		require.False(t, seen[addr], addr)
		seen[addr] = true
		ln, err := net.Listen("tcp", addr)
		require.NoError(t, err)
		defer ln.Close()
	}
	for range 2 * blockSize { // no port in use is given again
		require.NotContains(t, addrs, Addr(t))
	}
}

func TestProcessesHaveDifferentBlocks(t *testing.T) {
	var mine, other block
	require.NoError(t, mine.reserve())
	defer mine.reserved.Close()
	for range blocks {
		require.NoError(t, other.reserve())
		require.NotEqual(t, mine.first, other.first)
		require.NoError(t, other.reserved.Close())
		other = block{}
	}
}

func TestTooManyPorts(t *testing.T) {
	_, err := Take(blockSize)
	require.ErrorContains(t, err, "of 200 ports are free")
}
