package server

import "golang.org/x/sys/unix"

// peerEnded reports whether the peer of a socket has closed it or sends no more, even if input is unread.
func peerEnded(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}
