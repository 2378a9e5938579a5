package main

import (
	"errors"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/server"
)

// limiter hands a standalone node to the server, in the server's words.
type limiter struct{ *persistence.Node }

var _ server.Limiter = limiter{}

func (l limiter) Save() error {
	err := l.Node.Save()
	if errors.Is(err, persistence.ErrNoDisk) {
		return server.ErrNoDisk
	}
	return err
}
