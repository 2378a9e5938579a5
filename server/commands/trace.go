package commands

import (
	"time"

	"github.com/weir-project/weir/server/service"
)

// Tracer is told of the road that some decisions took. Its methods may be called from
// any goroutine, and must be quick.
type Tracer interface {
	// Picks says whether the decisions that have just been read are to be told of. It is
	// asked for each read of each client.
	Picks() bool
	// Trace is told when their replies are written.
	Trace(Road)
}

// Road is how the decisions that one read of a client brought went through the server.
type Road struct {
	Command  string // the first one
	Commands int
	Err      error // why none of the last of them was answered

	// Read: the bytes are there. From Decide to Decided the limiter had them. Replied:
	// the answers are with the operating system.
	Read, Decide, Decided, Replied time.Time
}

// Depart begins to note the road of what has just been read, if a tracer wants to know.
func (s *Session) Depart() {
	s.Road = nil
	if t := s.srv.cfg.Tracer; t != nil && t.Picks() {
		s.Road = &Road{Read: time.Now()}
	}
}

// decided notes a batch that the limiter has had since start.
func (r *Road) decided(b *service.Batch, start time.Time, err error) {
	if r.Commands == 0 {
		r.Command, r.Decide = b.Queue[0].Cmd.Full, start
	}
	r.Commands, r.Decided, r.Err = r.Commands+len(b.Queue), time.Now(), err
}

// Arrive tells the tracer, unless nothing was decided.
func (s *Session) Arrive() {
	r := s.Road
	if s.Road = nil; r.Commands > 0 {
		r.Replied = time.Now()
		s.srv.cfg.Tracer.Trace(*r)
	}
}
