package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxInFlight bounds the commands and pipelines in flight at once. Up to this number, callers do not wait for each
	// other. The commands of more callers share a pipeline, and so they share system calls in the client and in weir.
	maxInFlight = 2
	// maxPipelineLen bounds a pipeline.
	maxPipelineLen = 512
)

// errNotSent means that the deadline passed before the command was sent.
var errNotSent = errors.New("not sent in time")

// pipeliner coalesces simultaneous commands into one pipeline. It never delays a command on purpose. A command waits
// only while maxInFlight commands or pipelines are in flight.
type pipeliner struct {
	rdb     redis.UniversalClient
	timeout time.Duration // of a pipeline; each command has its own deadline as well

	mu      sync.Mutex
	idle    sync.Cond // signals that busy has become 0
	busy    int       // commands and pipelines in flight
	waiting []*queuedCmd
	closed  bool // process sends each command on its own
}

// queuedCmd is a command that waits for a pipeline, and then for its answer.
type queuedCmd struct {
	cmd      once
	sending  bool // the command is in a pipeline that is being sent
	err      error
	answered chan struct{} // closed after err is set
}

func newPipeliner(rdb redis.UniversalClient, timeout time.Duration) *pipeliner {
	t := &pipeliner{rdb: rdb, timeout: timeout}
	t.idle.L = &t.mu
	return t
}

// process carries out a command by the deadline of ctx.
func (t *pipeliner) process(ctx context.Context, cmd once) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return t.rdb.Process(ctx, cmd)
	}
	if t.busy < maxInFlight {
		t.busy++
		t.mu.Unlock()
		defer t.sendNext()
		return t.rdb.Process(ctx, cmd)
	}
	p := &queuedCmd{cmd: cmd, answered: make(chan struct{})}
	t.waiting = append(t.waiting, p)
	t.mu.Unlock()
	select {
	case <-p.answered:
		return p.err
	case <-ctx.Done():
		return t.abandon(ctx, p)
	}
}

// abandon returns the error of a command whose time is up. If the command is in a pipeline, its outcome is
// unknown.
func (t *pipeliner) abandon(ctx context.Context, p *queuedCmd) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.sending {
		return ctx.Err()
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(other *queuedCmd) bool { return other == p })
	return errNotSent
}

// sendNext is called when a command or pipeline has finished. It sends the waiting commands as the next pipeline.
func (t *pipeliner) sendNext() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.waiting), maxPipelineLen)
	if n == 0 {
		if t.busy--; t.busy == 0 {
			t.idle.Broadcast()
		}
		return
	}
	pipeline := slices.Clone(t.waiting[:n])
	t.waiting = slices.Delete(t.waiting, 0, n)
	for _, p := range pipeline {
		p.sending = true
	}
	go func() { // ends by t.timeout; close waits for it
		defer t.sendNext()
		t.send(pipeline)
	}()
}

func (t *pipeliner) send(pipeline []*queuedCmd) {
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	pipe := t.rdb.Pipeline()
	for _, p := range pipeline {
		_ = pipe.Process(ctx, p.cmd) // fails in Exec, if it does
	}
	_, err := pipe.Exec(ctx)
	for _, p := range pipeline {
		p.err = ownError(p.cmd, err)
		close(p.answered)
	}
}

// ownError returns the error of one command of a pipeline. A command with neither a reply nor an error gets ofAll,
// the error of the whole pipeline.
func ownError(cmd once, ofAll error) error {
	if err := cmd.Err(); err != nil || cmd.Val() != nil {
		return err
	}
	return ofAll
}

// close waits until no command is in flight.
func (t *pipeliner) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.closed = true; t.busy > 0; {
		t.idle.Wait()
	}
}
