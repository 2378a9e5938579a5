package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strconv"

	"github.com/weir-project/weir/internal/cli/listener"
)

// socketFlags are Unix sockets beside the ports, for programs on this machine.
type socketFlags struct {
	UnixSocket string `placeholder:"PATH" group:"ports" help:"Unix socket for clients, beside --listen. Its permissions decide who may connect; a password is needed as on a port."`
	HTTPSocket string `name:"http-socket" placeholder:"PATH" group:"ports" help:"Unix socket for what --http serves, without TLS. Without a password /check answers there only with --http-check open."`
	RLSSocket  string `name:"rls-socket" placeholder:"PATH" group:"ports" help:"Unix socket for what --rls serves."`
	SocketMode string `default:"0660" placeholder:"MODE" group:"ports" help:"Permissions of the Unix sockets, in octal."`
}

// openSockets opens the Unix sockets. The caller closes p after an error.
func (p *ports) openSockets(f *socketFlags) error {
	mode, err := f.mode()
	if err != nil {
		return err
	}
	for _, one := range []struct {
		flag, path string
		to         *net.Listener
	}{
		{"--unix-socket", f.UnixSocket, &p.socket}, {"--http-socket", f.HTTPSocket, &p.webSocket},
		{"--rls-socket", f.RLSSocket, &p.rlsSocket},
	} {
		if one.path == "" {
			continue
		}
		if *one.to, err = listener.ListenUnix(one.flag, one.path, mode); err != nil {
			return err
		}
	}
	return nil
}

// mode reads the permissions, which must let this user connect.
func (f *socketFlags) mode() (fs.FileMode, error) {
	bits, err := strconv.ParseUint(f.SocketMode, 8, 32)
	if err != nil || bits > uint64(fs.ModePerm) || bits&0o600 != 0o600 {
		return 0, fmt.Errorf("--socket-mode must be an octal mode from 0600 to 0777 like 0660, not %q", f.SocketMode)
	}
	return fs.FileMode(bits), nil
}

// checkSockets refuses a wrong mode, and two sockets with the same path.
func (f *socketFlags) checkSockets() error {
	_, err := f.mode()
	seen := map[string]string{"": ""}
	for _, one := range [][2]string{
		{"--unix-socket", f.UnixSocket}, {"--http-socket", f.HTTPSocket}, {"--rls-socket", f.RLSSocket},
	} {
		if other := seen[one[1]]; other != "" {
			err = errors.Join(err, fmt.Errorf("%s and %s are both %s: give each its own", other, one[0], one[1]))
		}
		if one[1] != "" {
			seen[one[1]] = one[0]
		}
		if at, statErr := os.Lstat(one[1]); statErr == nil && at.Mode().Type() != fs.ModeSocket {
			err = errors.Join(err, fmt.Errorf("%s %s exists and is no socket: choose another path", one[0], one[1]))
		}
	}
	return err
}
