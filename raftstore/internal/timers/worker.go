package timers

import "sync"

// Worker runs an act in a goroutine each time it is woken, one call at a time. The goroutine stays while it is in use:
// a new one costs several microseconds, because its stack must grow first. It ends when Rest finds that it is not in
// use.
type Worker struct {
	act   func()
	start func(func()) bool
	stop  <-chan struct{}

	wake chan struct{} // holds one token: the act is due
	rest chan struct{} // holds one token: Rest ended the use

	mu      sync.Mutex
	running bool
	inUse   bool // the goroutine waits for Wake
	woken   bool // Wake has been called since the last call of Rest
}

// NewWorker returns a worker without a goroutine. start starts the goroutine, or reports false. stop ends it, and act
// must then return soon.
func NewWorker(start func(func()) bool, stop <-chan struct{}, act func()) *Worker {
	return &Worker{act: act, start: start, stop: stop, wake: make(chan struct{}, 1), rest: make(chan struct{}, 1)}
}

// Wake makes the worker act, after a call that is under way.
func (w *Worker) Wake() { w.due(true) }

// Once is Wake for a rare call. It does not keep the goroutine.
func (w *Worker) Once() { w.due(false) }

func (w *Worker) due(uses bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if uses {
		w.inUse, w.woken = true, true
	}
	signal(w.wake)
	if !w.running {
		w.running = w.start(w.run)
	}
}

// Rest ends the goroutine if Wake has not been called since the last call of Rest.
func (w *Worker) Rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inUse && !w.woken {
		w.inUse = false
		signal(w.rest)
	}
	w.woken = false
}

func (w *Worker) run() {
	for stopped := false; !w.ends(stopped); {
		select {
		case <-w.wake:
			w.act()
		case <-w.rest:
		case <-w.stop:
			stopped = true
		}
	}
}

// ends reports whether the goroutine must end, and records that it does.
func (w *Worker) ends(stopped bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = !stopped && (w.inUse || len(w.wake) > 0)
	return !w.running
}

// signal leaves a token in a channel for one token.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
