package limiter

import "io"

// Archiver is a Limiter whose state can be copied while it decides.
type Archiver interface {
	// Backup returns the whole state. ErrNoDisk when there is nothing on a disk.
	Backup() (*Backup, error)
}

// Backup is the whole state of a node on its way into a file, in the form that weir
// restore understands. It holds on to files of the data directory until it is closed,
// read to its end or not.
type Backup struct {
	io.ReadCloser
	Bytes int64 // how many there are to read
}
