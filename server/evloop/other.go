//go:build !linux

package evloop

import "net"

// Group is not to be had on this system.
type Group struct{}

// New fails with ErrUnsupported.
func New() (*Group, error) { return nil, ErrUnsupported }

// Adopt fails with ErrUnsupported.
func (g *Group) Adopt(net.Conn) (*Conn, error) { return nil, ErrUnsupported }

// Close has nothing to end.
func (g *Group) Close() error { return nil }

// Conn is not to be had on this system.
type Conn struct{ net.Conn }

// Start fails with ErrUnsupported.
func (c *Conn) Start(func() bool) error { return ErrUnsupported }

// Detach has nothing to detach from.
func (c *Conn) Detach() {}

// AwaitEnd has nothing to wait for.
func (c *Conn) AwaitEnd() (ended <-chan struct{}, release func()) { return nil, func() {} }

// Turn is the connection.
func (c *Conn) Turn() net.Conn { return c.Conn }
