package service

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/latency"
)

// commandStats counts what INFO commandstats and errorstats tell.
type commandStats struct {
	commands []*Command    // all, in the order in which they are shown
	by       []CommandStat // by Command.slot

	AuthFailures atomic.Int64 // wrong passwords
	Lockouts     atomic.Int64 // sources that failed so often that their logins wait
	AuthWaits    atomic.Int64 // logins that had to wait, or were refused, for earlier failures
	NoPermission atomic.Int64 // commands and keys that a user may not use
	Decisions    latency.Histogram

	mu     sync.Mutex
	errors map[string]int64 // by the word an error reply begins with
}

// CommandStat fills a cache line, so that two busy commands do not share one.
type CommandStat struct {
	Calls, Ns, Rejected, Failed atomic.Int64
	Outcomes
	_ [2]int64
}

func newCommandStats(commands []*Command) *commandStats {
	return &commandStats{commands: commands, by: make([]CommandStat, len(commands)), errors: make(map[string]int64)}
}

// Of returns the statistics of a command.
func (c *commandStats) Of(cmd *Command) *CommandStat { return &c.by[cmd.Slot] }

// EachUsed visits the commands that were ever called.
func (c *commandStats) EachUsed(visit func(*Command, *CommandStat)) {
	for _, cmd := range c.commands {
		stat := c.Of(cmd)
		if stat.Calls.Load()+stat.Rejected.Load()+stat.Failed.Load() > 0 {
			visit(cmd, stat)
		}
	}
}

// Requests counts those of all commands since the start.
func (c *commandStats) Requests() (allowed, limited int64) {
	c.EachUsed(func(_ *Command, stat *CommandStat) {
		allowed += stat.Allowed.Load()
		limited += stat.Limited.Load()
	})
	return allowed, limited
}

// Count adds n calls that took so long together.
func (c *commandStats) Count(cmd *Command, n int, took time.Duration, failed bool) {
	stat := c.Of(cmd)
	stat.Calls.Add(int64(n))
	stat.Ns.Add(int64(took))
	if failed {
		stat.Failed.Add(1)
	}
}

// Reject counts a command that was not carried out, fail one that did not succeed.
func (c *commandStats) Reject(cmd *Command) { c.Of(cmd).Rejected.Add(1) }
func (c *commandStats) Fail(cmd *Command)   { c.Of(cmd).Failed.Add(1) }

// CountError counts the word of an error reply. The words are those of the
// error table, so the map stays small.
func (c *commandStats) CountError(text string) {
	word, _, _ := strings.Cut(text, " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors[word]++
}

func (c *commandStats) ErrorCounts() (byWord map[string]int64, total int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.errors {
		total += n
	}
	return maps.Clone(c.errors), total
}

// Processed is the number of commands carried out.
func (c *commandStats) Processed() (n int64) {
	for i := range c.by {
		n += c.by[i].Calls.Load()
	}
	return n
}

// Reset is CONFIG RESETSTAT.
func (c *commandStats) Reset() {
	for i := range c.by {
		stat := &c.by[i]
		stat.Calls.Store(0)
		stat.Ns.Store(0)
		stat.Rejected.Store(0)
		stat.Failed.Store(0)
		stat.Outcomes.reset()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.errors)
}
