package server

import "golang.org/x/sys/unix"

// peerEnded says whether the peer of a socket has gone or sends no more, also while
// something it sent has not been read.
func peerEnded(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}
