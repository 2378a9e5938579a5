package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Replicated is a Redis and its replicas. Requests go to the Redis, which answers without waiting for its replicas.
type Replicated struct {
	Primary  *Process
	Replicas []*Process // each started as a separate Redis

	started bool
}

var _ Server = (*Replicated)(nil)

// Start returns when every replica has the data of the primary.
func (r *Replicated) Start(ctx context.Context) error {
	if r.started {
		return nil
	}
	for _, p := range r.all() {
		if err := p.Start(ctx); err != nil {
			return errors.Join(err, r.Stop())
		}
	}
	host, port, err := net.SplitHostPort(r.Primary.addr)
	if err != nil {
		return errors.Join(err, r.Stop())
	}
	for _, p := range r.Replicas {
		err = errors.Join(err, AskOnce(p.addr, "REPLICAOF", host, port))
	}
	if err == nil {
		err = poll(ctx, ReadyTimeout, r.inSync)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("replicas of %s: %w", r.Primary.addr, err), r.Stop())
	}
	r.started = true
	return nil
}

// inSync reports whether the primary counts all replicas as connected.
func (r *Replicated) inSync() (bool, error) {
	info, err := serverInfo(r.Primary.addr, "replication")
	if err != nil {
		return false, err
	}
	for i := range r.Replicas {
		if !strings.Contains(info["slave"+strconv.Itoa(i)], "state=online") {
			return false, nil
		}
	}
	return true, nil
}

// Stop stops the replicas first, because they would otherwise look for their primary.
func (r *Replicated) Stop() error {
	r.started = false
	var errs []error
	for i := len(r.Replicas) - 1; i >= 0; i-- {
		errs = append(errs, r.Replicas[i].Stop())
	}
	return errors.Join(append(errs, r.Primary.Stop())...)
}

func (r *Replicated) all() []*Process { return append([]*Process{r.Primary}, r.Replicas...) }

// Addr implements Server.
func (r *Replicated) Addr(ctx context.Context) (string, error) { return r.Primary.Addr(ctx) }

// Nodes returns the primary alone, because replicas accept no writes.
func (r *Replicated) Nodes() []string { return r.Primary.Nodes() }

// PIDs implements Server. The CPU time of all processes counts.
func (r *Replicated) PIDs() []int {
	return mapOf(r.all(), func(p *Process) int { return p.cmd.Process.Pid })
}

// CommandLines implements Server.
func (r *Replicated) CommandLines() [][]string {
	return mapOf(r.all(), func(p *Process) []string { return p.cmd.Args })
}

// Version implements Server.
func (r *Replicated) Version(ctx context.Context) (string, error) { return r.Primary.Version(ctx) }
