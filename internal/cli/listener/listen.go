// Package listener opens ports of this machine. It refuses a port that other machines could reach without
// authentication. If a port is in use, it names the process that holds the port.
package listener

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"syscall"
)

var ErrExposed = errors.New("refusing to listen beyond this machine without a password")

// CheckExposure refuses an address that other machines can reach without authentication, because any client could
// reset the limiters there.
func CheckExposure(flag, addr string, logins, protected bool) error {
	if !protected || logins || IsLoopback(addr) {
		return nil
	}
	return fmt.Errorf("%w: %s is %s. Set one with --requirepass-file or name users with --users-file, or listen on "+
		"127.0.0.1, or give --protected-mode=false if the network itself keeps unknown clients out",
		ErrExposed, flag, addr)
}

// IsLoopback reports whether only this machine can reach an address. It looks a host name up, and wants all its
// addresses to be loopback.
func IsLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		return false
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	ips, err := net.LookupIP(host)
	if err != nil || len(ips) == 0 {
		return false
	}
	for _, ip := range ips {
		if !ip.IsLoopback() {
			return false
		}
	}
	return true
}

// Listen opens a TCP listener. It returns nil for an empty address.
func Listen(flag, addr string) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	ln, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %w by %s: stop that program, or choose another port", flag, err,
			cmp.Or(WhoListens(addr), "another process"))
	}
	if errors.Is(err, syscall.EACCES) {
		return nil, fmt.Errorf("%s: %w: ports below 1024 need root or CAP_NET_BIND_SERVICE; choose another port", flag,
			err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return ln, nil
}

// HowToConnect returns a command line that reaches the server. password and secure report whether the server wants a
// password and TLS.
func HowToConnect(addr net.Addr, password, secure bool) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	line := "redis-cli"
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() && host != "127.0.0.1" {
		line += " -h " + host
	}
	line += " -p " + port
	if secure {
		line += " --tls"
	}
	if password {
		line += " --askpass"
	}
	return line
}
