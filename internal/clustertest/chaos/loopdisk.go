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
	// The ioctl numbers of linux/fs.h. noFlush makes EXT4_IOC_SHUTDOWN drop what is not
	// on the device yet.
	fiFreeze, fiThaw, extShutdown = 0xC0045877, 0xC0045878, 0x8004587D
	noFlush                       = uint32(2)
	// throttleFile is where version 1 of control groups bounds writes per second of a
	// device, for the whole machine.
	throttleFile = "/sys/fs/cgroup/blkio/blkio.throttle.write_iops_device"
	// imageDir keeps the disk's content in memory where it can, away from what else the
	// machine writes.
	imageDir = "/dev/shm"
)

// ErrNoLoopDisk: this process may not make a loop device, so no disk can be frozen.
var ErrNoLoopDisk = errors.New("cannot mount a loop device")

// LoopDisk is a block device with an ext4 file system for the data of one node. It
// can freeze, become slow and lose its power.
type LoopDisk struct{ dir, image, device string }

// MountLoopDisk makes a device and mounts it on dir, which root may do on Linux.
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

// Freeze lets every write wait until Thaw.
func (d *LoopDisk) Freeze() error { return d.ioctl(fiFreeze, 0) }

// Thaw ends a freeze.
func (d *LoopDisk) Thaw() error { return d.ioctl(fiThaw, 0) }

// LosePower loses what is not on the device, and brings the file system back as a
// restart of the machine does. The node must have ended.
func (d *LoopDisk) LosePower() error {
	return errors.Join(d.ioctl(extShutdown, noFlush), syscall.Unmount(d.dir, 0), d.mount())
}

// Slow bounds the writes per second of the device; 0 is no bound.
func (d *LoopDisk) Slow(iops int) error {
	number, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(d.device), "dev"))
	if err != nil {
		return err
	}
	return os.WriteFile(throttleFile, fmt.Appendf(nil, "%s %d", strings.TrimSpace(string(number)), iops), 0)
}

// Unmount gives the device back. The node must have ended.
func (d *LoopDisk) Unmount() {
	_ = syscall.Unmount(d.dir, 0) // fails when it is not mounted
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
