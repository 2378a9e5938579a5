//go:build race

package evloop

import "syscall"

// read and write use package syscall, which tells the race detector that transferred bytes order operations at both
// ends.
func read(fd int, b []byte) (n int, err error) {
	n, err = syscall.Read(fd, b)
	return max(n, 0), err
}

func write(fd int, b []byte) (n int, err error) {
	n, err = syscall.Write(fd, b)
	return max(n, 0), err
}
