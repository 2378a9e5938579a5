package service

import (
	"fmt"
	"sync/atomic"

	"github.com/weir-project/weir/limiter"
)

// MaxEventWaiters bounds the requests that wait for events (BLOCK). Each holds a connection and a goroutine, and all of
// them are woken by each event.
const MaxEventWaiters = 1000

var errManyEventWaiters = fmt.Errorf("%w: %d requests wait for events already", limiter.ErrOverloaded, MaxEventWaiters)

// EventWaits counts the requests that wait for events.
type EventWaits struct{ Count atomic.Int32 }

// Join admits one more request. The caller must call Leave unless there is an error.
func (w *EventWaits) Join() error {
	if w.Count.Add(1) > MaxEventWaiters {
		w.Count.Add(-1)
		return errManyEventWaiters
	}
	return nil
}

// Leave ends the wait of a request.
func (w *EventWaits) Leave() { w.Count.Add(-1) }
