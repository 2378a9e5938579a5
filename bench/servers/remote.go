package servers

import "context"

// Remote is a Server that was started elsewhere. This package neither starts, empties nor stops it, and cannot see its
// CPU time, memory and disk writes.
type Remote struct {
	At string // host:port
}

var _ Server = (*Remote)(nil)

// Start returns an error if the server does not answer.
func (r *Remote) Start(context.Context) error { return pinged(r.At) }

func (r *Remote) Stop() error                             { return nil }
func (r *Remote) Addr(context.Context) (string, error)    { return r.At, nil }
func (r *Remote) Nodes() []string                         { return []string{r.At} }
func (r *Remote) PIDs() []int                             { return nil }
func (r *Remote) CommandLines() [][]string                { return nil }
func (r *Remote) Version(context.Context) (string, error) { return VersionAt(r.At) }
