package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"
)

const (
	// loopDiskBytes holds a node's log and state for a test of some minutes.
	loopDiskBytes = 512 << 20
	// These are ioctl numbers of linux/fs.h. noFlush makes EXT4_IOC_SHUTDOWN drop the data that is not on the device
	// yet.
	fiFreeze, fiThaw, extShutdown = 0xC0045877, 0xC0045878, 0x8004587D
	noFlush                       = uint32(2)
	// throttleFile bounds the writes per second of a device for the whole machine, by version 1 of control groups.
	throttleFile = "/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device"
	// imageDir keeps the content of the disk in memory if possible, so that other writes of the machine do not affect
	// it.
	imageDir = "/dev/shm"
)

// ErrNoLoopDisk reports that this process may not create a loop device, so no disk can be frozen.
var ErrNoLoopDisk = errors.New("cannot mount a loop device")

// LoopDisk is a block device with an ext4 file system for the data of one node. It can freeze, slow down and lose
// power.
type LoopDisk struct{ dir, image, device string }

// MountLoopDisk creates a device and mounts it on dir, which root may do on Linux.
func MountLoopDisk(dir string) (*LoopDisk, error) {
	where := imageDir
	if _, err := os.Stat(where); err != nil {
		where = ""
	}
	f, err := os.CreateTemp(where, "weir-chaos-disk-")
	if err != nil {
		return nil, err
	}
	d := &LoopDisk{dir: dir, image: f.Name()}
	err = errors.Join(f.Truncate(loopDiskBytes), f.Close(), os.MkdirAll(dir, 0o755))
	if err == nil {
		_, err = command("mkfs.ext4", "-q", "-F", d.image)
	}
	if err == nil {
		d.device, err = command("losetup", "--find", "--show", d.image)
	}
	if err == nil {
		err = d.mount()
	}
	if err != nil {
		d.Unmount()
		return nil, fmt.Errorf("%w: %w", ErrNoLoopDisk, err)
	}
	return d, nil
}

func command(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func (d *LoopDisk) mount() error { return syscall.Mount(d.device, d.dir, "ext4", 0, "") }

// Freeze blocks every write until Thaw.
func (d *LoopDisk) Freeze() error { return d.ioctl(fiFreeze, 0) }

// Thaw ends a freeze.
func (d *LoopDisk) Thaw() error { return d.ioctl(fiThaw, 0) }

// LosePower drops the data that is not on the device, and mounts the file system again as after a restart of the
// machine. The node must have ended.
func (d *LoopDisk) LosePower() error {
	return errors.Join(d.ioctl(extShutdown, noFlush), syscall.Unmount(d.dir, 0), d.mount())
}

// Slow bounds the writes per second of the device. 0 means no bound.
func (d *LoopDisk) Slow(iops int) error {
	number, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(d.device), "dev"))
	if err != nil {
		return err
	}
	return os.WriteFile(throttleFile, fmt.Appendf(nil, "%s %d", strings.TrimSpace(string(number)), iops), 0)
}

// Unmount releases the device. The node must have ended.
func (d *LoopDisk) Unmount() {
	_ = syscall.Unmount(d.dir, 0) // fails if it is not mounted
	if d.device != "" {
		_, _ = command("losetup", "--detach", d.device)
	}
	os.Remove(d.image)
}

// ioctl sends a command with a number as its argument to the file system.
func (d *LoopDisk) ioctl(request uintptr, arg uint32) error {
	f, err := os.Open(d.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, _, no := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(&arg))); no != 0 {
		return os.NewSyscallError("ioctl", no)
	}
	return nil
}
