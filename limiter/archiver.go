package limiter

import "io"

// Archiver is a Limiter that can copy its state while it decides.
type Archiver interface {
	// Backup returns the whole state. It returns ErrNoDisk if the state is in memory only. The caller closes the
	// Backup.
	Backup() (*Backup, error)
}

// Backup is the stream of the whole state of a node, in the format that weir restore reads. It keeps files of the data
// directory until it is closed. The caller may close it before the end.
type Backup struct {
	io.ReadCloser
	Bytes int64 // length of the stream
}
