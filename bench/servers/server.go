package servers

import (
	"context"
	"errors"
)

var (
	// ErrNotReady reports that a server ended, or did not answer in time.
	ErrNotReady = errors.New("did not become ready")
	// ErrNoLeader reports that a cluster did not elect a leader in time.
	ErrNoLeader = errors.New("no node is the leader")
)

// Server is a measured server: one process, several processes, or a server that was started elsewhere.
type Server interface {
	// Start returns when the server answers, or with the reason why it does not. It leaves a running server unchanged,
	// because two targets may share one server.
	Start(ctx context.Context) error
	// Stop stops the processes that Start started, and returns when they have ended.
	Stop() error
	// Addr returns the host:port for requests now, valid after Start. It may wait, for example for an election.
	Addr(ctx context.Context) (string, error)
	// Nodes returns the addresses of all processes that keep state, valid after Start.
	Nodes() []string
	// PIDs returns the processes whose CPU time counts. It returns none for a server that was started elsewhere.
	PIDs() []int
	// CommandLines returns the command lines of the processes, for the report.
	CommandLines() [][]string
	// Version returns the name and version of the server, valid after Start.
	Version(ctx context.Context) (string, error)
}
