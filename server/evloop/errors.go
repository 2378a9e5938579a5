package evloop

import "errors"

var (
	// ErrAgain: no input is available now. The read cycle must return.
	ErrAgain = errors.New("evloop: nothing to read yet")
	// ErrUnsupported: this system or this kind of connection has no pollers.
	ErrUnsupported = errors.New("evloop: not supported here")
)
