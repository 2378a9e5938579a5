//go:build race

package evloop

import "syscall"

// transfer uses package syscall, which tells the race detector that transferred bytes order operations at both ends.
func transfer(call uintptr, fd int, b []byte) (n int, err error) {
	if call == syscall.SYS_READ {
		n, err = syscall.Read(fd, b)
	} else {
		n, err = syscall.Write(fd, b)
	}
	return max(n, 0), err
}
