package server

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What still comes after the end is read at a pace and not for ever: nobody keeps a
// processor busy with it, or a connection. Times are those of the bubble, so exact.
func TestWhatComesAfterTheEndIsReadAtAPace(t *testing.T) {
	const step = lingerQuiet / 4
	for name, c := range map[string]struct {
		message   int           // bytes that the client sends
		every     time.Duration // again and again; 0: as fast as they are taken
		nudged    time.Duration // when the sweeper comes by; 0: never
		from, to  time.Duration // how long it lasts
		mostTaken int
	}{
		"silence":          {from: lingerQuiet, to: lingerQuiet},
		"silence, a nudge": {nudged: step, from: lingerQuiet + step, to: lingerQuiet + 2*step},
		"a drip": {message: 1, every: step, from: lingerMax, to: lingerMax + step,
			mostTaken: int(lingerMax/step) + 1},
		"a flood":          {message: 1 << 20, from: lingerMax, to: lingerMax, mostTaken: 8 << 20},
		"a flood, a nudge": {message: 1 << 20, nudged: step, from: lingerMax, to: lingerMax, mostTaken: 8 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				ending := &conn{nc: halfClosed{ours}}
				if c.nudged > 0 {
					time.AfterFunc(c.nudged, ending.nudge)
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

// halfClosed can be told that no more comes, while the other side still sends.
type halfClosed struct{ net.Conn }

func (halfClosed) CloseWrite() error { return nil }

// Somebody who floods gives up here, so that a test ends in any case.
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
