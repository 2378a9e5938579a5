//go:build !linux

package connpoll

import "net"

// New takes over connections.
func New(conns []net.Conn) (Poller, error) { return newBuffered(conns), nil }
