package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// The blocks lie between the ports of well-known servers and the range of outgoing connections.
const (
	lowest    = 15000
	blocks    = 85
	blockSize = 200
)

var errNone = errors.New("freeport: every block of ports is reserved by another process")

// block is the range of ports of this process.
type block struct {
	mu       sync.Mutex
	reserved net.Listener // on the first port; nil before the first Take
	first    int
	next     int // counts the ports that were looked at
}

var own block

// Take returns n different loopback addresses on which nobody listens. No other process that takes its ports here gets
// them. This process gets a port again only after all others of its block, and only if nobody listens on it.
func Take(n int) (addrs []string, err error) {
	own.mu.Lock()
	defer own.mu.Unlock()
	if err := own.reserve(); err != nil {
		return nil, err
	}
	for range blockSize - 1 {
		if len(addrs) == n {
			return addrs, nil
		}
		if addr, ok := own.look(); ok {
			addrs = append(addrs, addr)
		}
	}
	return nil, fmt.Errorf("freeport: %d of %d ports are free", len(addrs), n)
}

// TB is the part of a test that is needed here. So a program that takes ports does not link package testing.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Addrs is Take for a test, which fails if there are too few.
func Addrs(t TB, n int) []string {
	t.Helper()
	addrs, err := Take(n)
	if err != nil {
		t.Fatal(err)
	}
	return addrs
}

// Addr returns one address for a test.
func Addr(t TB) string {
	t.Helper()
	return Addrs(t, 1)[0]
}

// reserve takes a block, unless this process has one.
func (b *block) reserve() error {
	if b.reserved != nil {
		return nil
	}
	for _, i := range rand.Perm(blocks) {
		first := lowest + i*blockSize
		if ln, err := net.Listen("tcp", loopback(first)); err == nil {
			b.reserved, b.first = ln, first
			return nil
		}
	}
	return errNone
}

// look returns the next port of the block, and whether it is free on every address of this machine.
func (b *block) look() (addr string, free bool) {
	port := b.first + 1 + b.next%(blockSize-1)
	b.next++
	ln, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return "", false
	}
	return loopback(port), ln.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
