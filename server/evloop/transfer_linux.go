//go:build !race

package evloop

import (
	"syscall"
	"unsafe"
)

func read(fd int, b []byte) (int, error)  { return transfer(syscall.SYS_READ, fd, b) }
func write(fd int, b []byte) (int, error) { return transfer(syscall.SYS_WRITE, fd, b) }

// transfer reads or writes without blocking and without notifying the scheduler, because such a call takes only as long
// as a copy.
func transfer(call uintptr, fd int, b []byte) (int, error) {
	for {
		n, _, errno := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))),
			uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), nil
		case syscall.EINTR:
		default:
			return 0, errno
		}
	}
}
