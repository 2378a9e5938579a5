//go:build !linux

package evloop

import "net"

// Group is not supported on this system.
type Group struct{}

// New fails with ErrUnsupported.
func New() (*Group, error) { return nil, ErrUnsupported }

// Adopt fails with ErrUnsupported.
func (g *Group) Adopt(net.Conn) (*Conn, error) { return nil, ErrUnsupported }

// Close does nothing.
func (g *Group) Close() error { return nil }

// Conn is not supported on this system.
type Conn struct{ net.Conn }

// Start fails with ErrUnsupported.
func (c *Conn) Start(func() bool) error { return ErrUnsupported }

// Detach does nothing.
func (c *Conn) Detach() {}

// AwaitEnd returns a nil channel.
func (c *Conn) AwaitEnd() (ended <-chan struct{}, release func()) { return nil, func() {} }

// CycleConn returns the connection.
func (c *Conn) CycleConn() net.Conn { return c.Conn }
