//go:build !linux

package bench

import "net"

func newConnPoller(conns []net.Conn) (connPoller, error) { return newBuffered(conns), nil }
