//go:build !race

package evloop

import (
	"syscall"
	"unsafe"
)

// transfer calls SYS_READ or SYS_WRITE without blocking and without notifying the scheduler, because such a call takes
// only as long as a copy.
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
