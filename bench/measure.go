package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-project/weir/bench/machine"
	"github.com/weir-project/weir/bench/servers"
)

// cell is an entrant and its target.
type cell struct {
	Entrant
	target      Target
	prepared    bool
	bytesPerKey float64 // of a filled server
	idleMemory  float64 // in bytes, if the scenario measures memory
}

// prepare empties a server, loads the scripts of a load and checks that its commands decide. It fills the server if the
// load requires that.
func (c *cell) prepare(ctx context.Context) error {
	if c.prepared {
		return nil
	}
	c.prepared = true
	addr, err := c.target.Server.Addr(ctx)
	if err != nil {
		return err
	}
	if !c.target.Keeps {
		if err := servers.AskOnce(addr, "FLUSHALL"); err != nil {
			return err
		}
	}
	if err := prepareCommand(addr, c.target.Commands[c.Load.Workload], c.Load.Workload); err != nil {
		return err
	}
	if c.Load.Held {
		idle, err := machine.ResidentBytes(c.target.Server.PIDs(), "VmRSS")
		c.idleMemory = float64(idle)
		return err
	}
	if c.Load.Filled {
		return c.fill(ctx, addr)
	}
	return nil
}

func prepareCommand(addr string, command Command, w Workload) error {
	if command.Script != "" {
		if err := servers.AskOnce(addr, "SCRIPT", "LOAD", command.Script); err != nil {
			return err
		}
	}
	if len(command.Before) > 0 {
		if err := servers.AskOnce(addr, command.Before...); err != nil {
			return err
		}
	}
	conn, err := call(addr)
	if err != nil {
		return err
	}
	defer conn.conn.Close()
	return conn.verify(command, w)
}

// fill creates every key, and measures the memory that the keys take.
func (c *cell) fill(ctx context.Context, addr string) error {
	pids := c.target.Server.PIDs()
	before, err := machine.ResidentBytes(pids, "VmRSS")
	if err != nil {
		return err
	}
	l := c.Load
	l.Clients, l.Pipeline = usualClients, fillPipeline
	links, err := newSwarm(ctx, addr, sender{l, c.target.Commands}, newPicker(l))
	if err != nil {
		return err
	}
	defer links.close()
	if err := links.fill(ctx, l.Keys); err != nil {
		return fmt.Errorf("filling: %w", err)
	}
	if err := settle(c.target); err != nil {
		return err
	}
	after, err := machine.ResidentBytes(pids, "VmRSS")
	c.bytesPerKey = float64(after-before) / float64(l.Keys)
	return err
}

// settle makes every node of a server finish deferred work.
func settle(t Target) error {
	if len(t.Settle) == 0 {
		return nil
	}
	if err := servers.AskAll(t.Server.Nodes(), t.Settle...); err != nil {
		return fmt.Errorf("settling: %w", err)
	}
	return nil
}

func (c *cell) job(addr string, requests int) Job {
	return Job{Addr: addr, Commands: c.target.Commands, Load: c.Load, Requests: requests}
}

// measure loads a target once. It reads the server's resources before the load and after the server has settled.
// Deferred work is part of the cost of a decision, and must not count to the next load.
func (c *cell) measure(ctx context.Context, by Generator, requests int, lasting time.Duration) (Sample, error) {
	server := c.target.Server
	addr, err := server.Addr(ctx)
	if err != nil {
		return Sample{}, err
	}
	before, err := machine.UsageOf(server.PIDs())
	if err != nil {
		return Sample{}, err
	}
	job := c.job(addr, requests)
	job.Lasting = lasting
	outcome, err := by.Run(ctx, job)
	if err != nil {
		return Sample{}, err
	}
	if err := settle(c.target); err != nil {
		return Sample{}, err
	}
	after, err := machine.UsageOf(server.PIDs())
	if err != nil {
		return Sample{}, err
	}
	if now, err := server.Addr(ctx); err != nil || now != addr {
		return Sample{}, errors.Join(ErrMoved, err)
	}
	sample := outcome.sample(after.CPU-before.CPU, after.DiskBytes-before.DiskBytes)
	sample.BytesPerKey, sample.IdleMemory = c.bytesPerKey, c.idleMemory
	if c.Load.Held {
		most, err := machine.ResidentBytes(server.PIDs(), "VmHWM")
		if err != nil {
			return Sample{}, err
		}
		sample.MostMemory = float64(most)
	}
	return sample, ctx.Err()
}

// sample combines an outcome with the resources that the server used for it.
func (o Outcome) sample(cpu time.Duration, diskBytes int64) Sample {
	return Sample{
		Requests: o.Decisions, PerSecond: o.PerSecond, Latency: o.Latency,
		CPUMicros:       perDecision(cpu, o.Decisions),
		ServerBusy:      cpu.Seconds() / o.Took.Seconds(),
		DiskBytes:       float64(diskBytes) / float64(o.Decisions),
		Read:            o.Read,
		Admitted:        o.Admitted,
		GeneratorMicros: perDecision(o.Busy, o.Decisions),
		GeneratorBusy:   o.Busy.Seconds() / o.Took.Seconds(),
		Threads:         o.Threads,
		LagP999Ms:       o.LagP999Ms,
	}
}

// perDecision divides a time by the number of decisions, in microseconds.
func perDecision(d time.Duration, decisions int) float64 {
	return float64(d) / float64(time.Microsecond) / float64(decisions)
}
