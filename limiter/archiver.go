package limiter

import "io"

// Archiver is a Limiter that can copy its state while it decides.
type Archiver interface {
	// Backup returns the whole state. It returns ErrNoDisk if the state is in memory only.
	Backup() (*Backup, error)
}

// Backup is the stream of the whole state of a node, in the format that weir restore reads. It holds files of the data
// directory until it is closed, at any position.
type Backup struct {
	io.ReadCloser
	Bytes int64 // length of the stream
}
