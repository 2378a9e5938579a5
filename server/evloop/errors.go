package evloop

import "errors"

var (
	// ErrAgain: there is nothing to read now. The turn is to return.
	ErrAgain = errors.New("evloop: nothing to read yet")
	// ErrUnsupported: this system, or this kind of connection, has no pollers.
	ErrUnsupported = errors.New("evloop: not supported here")
)
