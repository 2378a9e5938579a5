//go:build race

package evloop

import "syscall"

// read and write tell the race detector that bytes order what is done on both ends.
func read(fd int, b []byte) (n int, err error) {
	n, err = syscall.Read(fd, b)
	return max(n, 0), err
}

func write(fd int, b []byte) (n int, err error) {
	n, err = syscall.Write(fd, b)
	return max(n, 0), err
}
