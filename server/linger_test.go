package server

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestWhatComesAfterTheEndIsReadAtAPace checks that input after the end is read at a limited pace and for a limited
// time, so that no client keeps a processor or a connection busy. The test uses fake time, so durations are exact.
func TestWhatComesAfterTheEndIsReadAtAPace(t *testing.T) {
	const step = lingerQuiet / 4
	for name, c := range map[string]struct {
		message   int           // bytes that the client sends
		every     time.Duration // pause between messages; 0: none
		wokenAt   time.Duration // when the sweeper wakes the connection; 0: never
		from, to  time.Duration // bounds on the duration
		mostTaken int
	}{
		"silence":            {from: lingerQuiet, to: lingerQuiet},
		"silence, a wake-up": {wokenAt: step, from: lingerQuiet + step, to: lingerQuiet + 2*step},
		"a drip": {message: 1, every: step, from: lingerMax, to: lingerMax + step,
			mostTaken: int(lingerMax/step) + 1},
		"a flood":            {message: 1 << 20, from: lingerMax, to: lingerMax, mostTaken: 8 << 20},
		"a flood, a wake-up": {message: 1 << 20, wokenAt: step, from: lingerMax, to: lingerMax, mostTaken: 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				ending := &conn{nc: halfClosed{ours}}
				if c.wokenAt > 0 {
					time.AfterFunc(c.wokenAt, ending.wake)
				}
				taken := make(chan int)
				go func() { taken <- pour(theirs, c.message, c.every) }()
				begun := time.Now()
				ending.linger()
				took := time.Since(begun)
				require.NoError(t, ours.Close())
				require.LessOrEqual(t, <-taken, c.mostTaken)
				require.GreaterOrEqual(t, took, c.from)
				require.LessOrEqual(t, took, c.to)
			})
		})
	}
}

// halfClosed accepts CloseWrite, while the other side continues to send.
type halfClosed struct{ net.Conn }

func (halfClosed) CloseWrite() error { return nil }

// These bounds stop a flood, so that the test ends in any case.
const (
	enoughPoured  = 64 << 20
	enoughPouring = 2 * lingerMax
)

// pour sends as much as it can and returns how many bytes were taken.
func pour(to net.Conn, message int, every time.Duration) (taken int) {
	for end := time.Now().Add(enoughPouring); message > 0 && taken < enoughPoured && time.Now().Before(end); {
		n, err := to.Write(make([]byte, message))
		if taken += n; err != nil {
			break
		}
		time.Sleep(every)
	}
	return taken
}
