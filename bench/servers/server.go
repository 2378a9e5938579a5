package servers

import (
	"context"
	"errors"
)

var (
	// ErrNotReady: a server ended, or did not answer in time.
	ErrNotReady = errors.New("did not get ready")
	// ErrNoLeader: a cluster did not elect a leader in time.
	ErrNoLeader = errors.New("no node leads")
)

// Server is what answers at an address: one process, several, or none of ours.
type Server interface {
	// Start returns when the server answers, or says why it does not. What has been
	// started already stays as it is: two targets may be ways to one server.
	Start(ctx context.Context) error
	// Stop ends what Start began, and returns when it has ended.
	Stop() error
	// Addr is the host:port that requests go to now, valid after Start. It may wait,
	// like for a cluster to elect its leader.
	Addr(ctx context.Context) (string, error)
	// Nodes are the addresses of all processes that keep state, valid after Start.
	Nodes() []string
	// PIDs are the processes whose CPU counts; none when they are not ours to see.
	PIDs() []int
	// CommandLines are what started it, for the report.
	CommandLines() [][]string
	// Version says what answers, valid after Start.
	Version(ctx context.Context) (string, error)
}
