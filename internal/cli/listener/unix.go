package listener

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
)

// ListenUnix opens a Unix socket with a mode. The listener removes the file when it is closed. A socket that a killed
// process left behind is replaced. ListenUnix refuses a path that another process serves, or that is no socket.
func ListenUnix(flag, path string, mode fs.FileMode) (net.Listener, error) {
	ln, err := net.Listen("unix", path)
	if errors.Is(err, syscall.EADDRINUSE) {
		if err = removeDead(path); err == nil {
			ln, err = net.Listen("unix", path)
		}
	}
	if errors.Is(err, syscall.EINVAL) {
		err = fmt.Errorf("%w: a path of a Unix socket has at most about 100 bytes", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	own := &unixListener{UnixListener: ln.(*net.UnixListener), path: path}
	own.SetUnlinkOnClose(false)
	if own.file, err = os.Lstat(path); err == nil {
		err = os.Chmod(path, mode)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, errors.Join(err, own.Close()))
	}
	return own, nil
}

// unixListener removes its socket when it is closed, unless another file has taken the path.
type unixListener struct {
	*net.UnixListener
	path string
	file fs.FileInfo
}

func (l *unixListener) Close() error {
	err := l.UnixListener.Close()
	if at, statErr := os.Lstat(l.path); err == nil && statErr == nil && l.file != nil && os.SameFile(at, l.file) {
		return os.Remove(l.path)
	}
	return err
}

// removeDead removes a socket at which nobody listens.
func removeDead(path string) error {
	if at, err := os.Lstat(path); err != nil || at.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is no socket: choose another path", path)
	}
	conn, err := net.DialTimeout("unix", path, answerWithin)
	if err == nil {
		return errors.Join(fmt.Errorf("%s is in use by another process: stop it, or choose another path", path),
			conn.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return err
	}
	return os.Remove(path)
}
