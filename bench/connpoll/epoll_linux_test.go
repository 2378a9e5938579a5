package connpoll

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestPollersNeedFewMoreDescriptors checks that a load never needs many more descriptors than connections. A load may
// use half of the descriptors that a process may open.
func TestPollersNeedFewMoreDescriptors(t *testing.T) {
	const count, few = 100, 20
	w, _ := pollerOfPeers(t, count, func(conns []net.Conn) (Poller, error) {
		var limit unix.Rlimit
		require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
		open, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		low := limit
		low.Cur = uint64(len(open) + few)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
		defer func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit)) }()
		return New(conns)
	})
	require.NoError(t, w.Close())
}
