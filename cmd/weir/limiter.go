package main

import (
	"errors"
	"io"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/server"
)

// limiter hands a standalone node to the server, in the server's words.
type limiter struct{ *persistence.Node }

var (
	_ server.Limiter         = limiter{}
	_ server.StorageReporter = limiter{}
	_ server.Archiver        = limiter{}
)

func (l limiter) Save() error {
	err := l.Node.Save()
	if errors.Is(err, persistence.ErrNoDisk) {
		return server.ErrNoDisk
	}
	return err
}

func (l limiter) Backup() (io.ReadCloser, int64, error) {
	b, err := l.Node.Backup()
	switch {
	case errors.Is(err, persistence.ErrNoDisk):
		return nil, 0, server.ErrNoDisk
	case err != nil:
		return nil, 0, err
	}
	return b, b.Bytes, nil
}

func (l limiter) Storage() (server.Storage, bool) {
	r, ok := l.Report()
	return server.Storage{
		Writes: r.Writes, UsedBytes: r.UsedBytes, FreeBytes: r.Disk.AvailBytes, SizeBytes: r.Disk.TotalBytes,
	}, ok
}
