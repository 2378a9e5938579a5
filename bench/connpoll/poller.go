package connpoll

import (
	"errors"
	"time"
)

// Poller polls connections in one thread. An open loop sends and receives through it. A sender that wakes other threads
// to receive costs a quarter more. With few processors these threads also wait for each other and for the server, which
// shows in all percentiles.
type Poller interface {
	// Wait waits for d, or until connections have data to read, and returns their numbers. The numbers are valid until
	// the next Wait. It may return early.
	Wait(d time.Duration) ([]int, error)
	// Read reads the data that has arrived. It returns ErrNotYet if there is none.
	Read(i int, b []byte) (int, error)
	// Write writes as much as the connection accepts now.
	Write(i int, b []byte) (int, error)
	// Close closes the connections.
	Close() error
}

// longestWrite is how long Write may wait for a connection of the buffered kind.
const longestWrite = 10 * time.Millisecond

// ErrNotYet reports that no data has arrived.
var ErrNotYet = errors.New("no data has arrived yet")
