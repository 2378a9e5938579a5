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
	// mostApart is how many commands are on their way each by itself, or pipelines of those
	// that come meanwhile. A lone caller never waits for another; many at once cost one
	// system call for several of them, here and at weir.
	mostApart = 2
	// mostTogether bounds a pipeline: what weir decides in one batch, several times over.
	mostTogether = 512
)

// errNotSent: the deadline came before the command was sent.
var errNotSent = errors.New("not sent in time")

// together sends commands that come at the same time in one pipeline. Nothing waits for
// company: a command is held only while mostApart are on their way.
type together struct {
	rdb     redis.UniversalClient
	timeout time.Duration // of a pipeline; its commands have deadlines of their own, too

	mu      sync.Mutex
	idle    sync.Cond // busy has become 0
	busy    int       // on their way
	waiting []*passenger
	closed  bool // nothing is held any more
}

// passenger is a command that waits for a pipeline, and then for its answer.
type passenger struct {
	cmd      once
	aboard   bool // of a pipeline
	err      error
	answered chan struct{} // closed behind err
}

func newTogether(rdb redis.UniversalClient, timeout time.Duration) *together {
	t := &together{rdb: rdb, timeout: timeout}
	t.idle.L = &t.mu
	return t
}

// process carries a command out, by the deadline of ctx.
func (t *together) process(ctx context.Context, cmd once) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return t.rdb.Process(ctx, cmd)
	}
	if t.busy < mostApart {
		t.busy++
		t.mu.Unlock()
		defer t.next()
		return t.rdb.Process(ctx, cmd)
	}
	p := &passenger{cmd: cmd, answered: make(chan struct{})}
	t.waiting = append(t.waiting, p)
	t.mu.Unlock()
	select {
	case <-p.answered:
		return p.err
	case <-ctx.Done():
		return t.leave(ctx, p)
	}
}

// leave is what becomes of a command whose time is up. Where it is aboard nobody knows.
func (t *together) leave(ctx context.Context, p *passenger) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.aboard {
		return ctx.Err()
	}
	t.waiting = slices.DeleteFunc(t.waiting, func(other *passenger) bool { return other == p })
	return errNotSent
}

// next hands the place of what has come back to those who wait.
func (t *together) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := min(len(t.waiting), mostTogether)
	if n == 0 {
		if t.busy--; t.busy == 0 {
			t.idle.Broadcast()
		}
		return
	}
	pipeline := slices.Clone(t.waiting[:n])
	t.waiting = slices.Delete(t.waiting, 0, n)
	for _, p := range pipeline {
		p.aboard = true
	}
	go func() { // ends by t.timeout; close waits for it
		defer t.next()
		t.send(pipeline)
	}()
}

func (t *together) send(pipeline []*passenger) {
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

// ownError is the error of one command of a pipeline.
func ownError(cmd once, ofAll error) error {
	if err := cmd.Err(); err != nil || cmd.Val() != nil {
		return err
	}
	return ofAll
}

// close returns when nothing is on its way any more.
func (t *together) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.closed = true; t.busy > 0; {
		t.idle.Wait()
	}
}
