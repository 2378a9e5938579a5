package evloop

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testWait bounds each wait for an expected event.
const testWait = 20 * time.Second

// rig is a group that serves the connections of a listener. serve returns the read cycle of a connection.
type rig struct {
	*Group
	addr  string
	mu    sync.Mutex
	conns []*Conn
}

func newRig(t *testing.T, serve func(c *Conn) func() bool) *rig {
	g, err := New()
	require.NoError(t, err)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r := &rig{Group: g, addr: ln.Addr().String()}
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			c, err := g.Adopt(nc)
			if err != nil {
				panic(err)
			}
			r.mu.Lock()
			r.conns = append(r.conns, c)
			r.mu.Unlock()
			if err := c.Start(serve(c)); err != nil {
				panic(err)
			}
		}
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-accepting
		for _, c := range r.all() {
			_ = c.Close()
		}
		require.NoError(t, g.Close())
	})
	return r
}

func (r *rig) all() []*Conn {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]*Conn(nil), r.conns...)
}

func (r *rig) dial(t *testing.T) *net.TCPConn {
	nc, err := net.Dial("tcp", r.addr)
	require.NoError(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	require.NoError(t, nc.SetDeadline(time.Now().Add(testWait)))
	return nc.(*net.TCPConn)
}

// echo sends all input back. It calls meanwhile before each answer.
func echo(c *Conn, meanwhile func()) func() bool {
	b := make([]byte, 1024)
	return func() bool {
		for {
			n, err := c.CycleConn().Read(b)
			switch {
			case err == ErrAgain:
				return true
			case err != nil:
				_ = c.Close()
				return false
			}
			meanwhile()
			if _, err := c.CycleConn().Write(b[:n]); err != nil {
				_ = c.Close()
				return false
			}
		}
	}
}

func nothing() {}

// TestAnEventOfAnotherIsNotOurs checks that an event is ignored if its connection was closed after the event was read,
// and another connection got the same descriptor.
func TestAnEventOfAnotherIsNotOurs(t *testing.T) {
	r := newRig(t, func(c *Conn) func() bool { return echo(c, nothing) })
	nc := r.dial(t)
	require.NoError(t, exchange(nc, []byte("hello")))
	c := r.all()[0]
	stale := syscall.EpollEvent{Events: syscall.EPOLLRDHUP, Fd: int32(c.fd), Pad: c.serial - 1}
	p := &poller{group: r.Group}
	require.True(t, p.handle(stale))
	require.False(t, c.ending.Load())
	stale.Pad = c.serial
	p.handle(stale)
	require.True(t, c.ending.Load())
}

// exchange sends b, reads the same number of bytes and compares them. It has testWait for that, however many exchanges
// came before.
func exchange(nc net.Conn, b []byte) error {
	if err := nc.SetDeadline(time.Now().Add(testWait)); err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() {
		_, err := nc.Write(b)
		sent <- err
	}()
	got := make([]byte, len(b))
	if _, err := io.ReadFull(nc, got); err != nil {
		return err
	}
	if !bytes.Equal(b, got) {
		return errors.New("the answer is another one")
	}
	return <-sent
}

// TestEveryByteIsAnswered checks that every byte comes back in order, with many clients, small and large messages,
// and read cycles that detach at times.
func TestEveryByteIsAnswered(t *testing.T) {
	const clients, rounds = 40, 60
	r := newRig(t, func(c *Conn) func() bool {
		n := 0
		return echo(c, func() {
			if n++; n%7 == 0 {
				c.Detach()
			}
		})
	})
	failed := make(chan error, clients)
	for i := range clients {
		nc := r.dial(t)
		go func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range rounds {
				b := make([]byte, 1+rng.IntN(1<<rng.IntN(17)))
				for j := range b {
					b[j] = byte(rng.Uint32())
				}
				if err := exchange(nc, b); err != nil {
					failed <- err
					return
				}
			}
			failed <- nil
		}()
	}
	for range clients {
		require.NoError(t, <-failed)
	}
}

// TestDetachedReadCycleDelaysNoOther checks that other connections are served while a detached read cycle waits.
func TestDetachedReadCycleDelaysNoOther(t *testing.T) {
	release := make(chan struct{})
	first := atomic.Bool{}
	r := newRig(t, func(c *Conn) func() bool {
		return echo(c, func() {
			if first.CompareAndSwap(false, true) {
				c.Detach()
				<-release
			}
		})
	})
	stuck, other := r.dial(t), r.dial(t)
	_, err := stuck.Write([]byte("one"))
	require.NoError(t, err)
	require.Eventually(t, first.Load, testWait, time.Millisecond)
	for range 100 {
		require.NoError(t, exchange(other, []byte("two")))
	}
	_, err = stuck.Write([]byte("more")) // arrives during the read cycle
	require.NoError(t, err)
	close(release)
	got := make([]byte, len("onemore"))
	_, err = io.ReadFull(stuck, got)
	require.NoError(t, err)
	require.Equal(t, "onemore", string(got))
}

// TestAFullSocketKeepsNobodyWaiting checks that a write to a client that does not read waits until its deadline, and
// that others are served meanwhile.
func TestAFullSocketKeepsNobodyWaiting(t *testing.T) {
	ended := make(chan error, 1)
	r := newRig(t, func(c *Conn) func() bool {
		answer := echo(c, func() {
			if c.LocalAddr() == nil {
				panic("no address")
			}
		})
		flood := make([]byte, 64<<20)
		return func() bool {
			b := make([]byte, 1)
			n, err := c.CycleConn().Read(b)
			if n == 0 || b[0] != 'F' {
				if err == ErrAgain {
					return true
				}
				if n == 1 {
					_, _ = c.CycleConn().Write(b)
				}
				return answer()
			}
			_ = c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
			_, err = c.CycleConn().Write(flood)
			ended <- err
			_ = c.Close()
			return false
		}
	})
	greedy, other := r.dial(t), r.dial(t)
	_, err := greedy.Write([]byte("F"))
	require.NoError(t, err)
	for range 100 {
		require.NoError(t, exchange(other, []byte("hello")))
	}
	require.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
}

// TestASlowReaderGetsEverything checks that a blocked write continues when the client reads.
func TestASlowReaderGetsEverything(t *testing.T) {
	flood := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	r := newRig(t, func(c *Conn) func() bool {
		return func() bool {
			b := make([]byte, 16)
			if _, err := c.CycleConn().Read(b); err != nil {
				return err == ErrAgain
			}
			_, err := c.CycleConn().Write(flood)
			return err == nil
		}
	})
	nc := r.dial(t)
	_, err := nc.Write([]byte("go"))
	require.NoError(t, err)
	got, err := io.ReadAll(io.LimitReader(nc, int64(len(flood))))
	require.NoError(t, err)
	require.True(t, bytes.Equal(flood, got))
}

// TestTheEndIsNoticed checks that the end of a client's input is detected, also if it arrives with the last bytes.
func TestTheEndIsNoticed(t *testing.T) {
	closed := make(chan error, 100)
	r := newRig(t, func(c *Conn) func() bool {
		b := make([]byte, 1024)
		return func() bool {
			for {
				_, err := c.CycleConn().Read(b)
				if err == ErrAgain {
					return true
				}
				if err != nil {
					closed <- err
					_ = c.Close()
					return false
				}
			}
		}
	})
	for i := range 100 {
		nc := r.dial(t)
		if i%2 == 0 {
			_, err := nc.Write([]byte("last words"))
			require.NoError(t, err)
		}
		require.NoError(t, nc.CloseWrite())
	}
	for range 100 {
		select {
		case err := <-closed:
			require.ErrorIs(t, err, io.EOF)
		case <-time.After(testWait):
			t.Fatal("a connection's end went unnoticed")
		}
	}
}

// TestRestingConnectionsAreWoken checks that Close and deadlines reach a resting connection and a waiting one.
func TestRestingConnectionsAreWoken(t *testing.T) {
	for name, wake := range map[string]struct {
		do   func(c *Conn)
		want error
	}{
		"closed":        {func(c *Conn) { _ = c.Close() }, net.ErrClosed},
		"past deadline": {func(c *Conn) { _ = c.SetReadDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"future deadline": {func(c *Conn) { _ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) },
			os.ErrDeadlineExceeded},
	} {
		for _, blocking := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				got, waiting := make(chan error, 1), make(chan struct{}, 10)
				r := newRig(t, func(c *Conn) func() bool {
					return func() bool {
						waiting <- struct{}{}
						read := c.CycleConn().Read
						if blocking {
							c.Detach()
							read = c.Read
						}
						for {
							_, err := read(make([]byte, 8))
							if err == ErrAgain {
								return true
							}
							if err != nil {
								got <- err
								return false
							}
						}
					}
				})
				nc := r.dial(t)
				_, err := nc.Write([]byte("hello"))
				require.NoError(t, err)
				<-waiting
				wake.do(r.all()[0])
				select {
				case err := <-got:
					require.ErrorIs(t, err, wake.want)
				case <-time.After(testWait):
					t.Fatal("nobody noticed")
				}
			})
		}
	}
}

// TestADeadlineTakenBack checks that a removed deadline has no effect.
func TestADeadlineTakenBack(t *testing.T) {
	r := newRig(t, func(c *Conn) func() bool { return echo(c, nothing) })
	nc := r.dial(t)
	require.NoError(t, exchange(nc, []byte("a")))
	c := r.all()[0]
	for range 200 {
		require.NoError(t, c.SetReadDeadline(time.Now().Add(50*time.Microsecond)))
		require.NoError(t, c.SetReadDeadline(time.Time{}))
		require.False(t, c.overdue.Load())
	}
}

// TestOnlySocketsAreAdopted checks that the group leaves connections of other types unchanged.
func TestOnlySocketsAreAdopted(t *testing.T) {
	g, err := New()
	require.NoError(t, err)
	defer func() { require.NoError(t, g.Close()) }()
	a, b := net.Pipe()
	defer func() { _, _ = a.Close(), b.Close() }()
	_, err = g.Adopt(a)
	require.ErrorIs(t, err, ErrUnsupported)
}
