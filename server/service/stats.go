package service

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weir-project/weir/latency"
)

// commandStats counts the values of INFO commandstats and errorstats.
type commandStats struct {
	commands []*Command    // all, in display order
	by       []CommandStat // indexed by Command.Slot

	AuthFailures atomic.Int64 // wrong passwords
	Lockouts     atomic.Int64 // addresses whose logins are delayed after failures
	AuthWaits    atomic.Int64 // logins that were delayed or refused after earlier failures
	NoPermission atomic.Int64 // refused commands and keys
	Decisions    latency.Histogram

	mu     sync.Mutex
	errors map[string]int64 // by the first word of an error reply
}

// CommandStat fills a cache line, so that two busy commands share none.
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

// EachUsed visits the commands that were called at least once.
func (c *commandStats) EachUsed(visit func(*Command, *CommandStat)) {
	for _, cmd := range c.commands {
		stat := c.Of(cmd)
		if stat.Calls.Load()+stat.Rejected.Load()+stat.Failed.Load() > 0 {
			visit(cmd, stat)
		}
	}
}

// Requests sums the outcomes of all commands since the start.
func (c *commandStats) Requests() (allowed, limited int64) {
	c.EachUsed(func(_ *Command, stat *CommandStat) {
		allowed += stat.Allowed.Load()
		limited += stat.Limited.Load()
	})
	return allowed, limited
}

// Reject counts a command that was not executed. Fail counts a command that failed.
func (c *commandStats) Reject(cmd *Command) { c.Of(cmd).Rejected.Add(1) }
func (c *commandStats) Fail(cmd *Command)   { c.Of(cmd).Failed.Add(1) }

// CountError counts the first word of an error reply. The error table defines these words, so the map stays small.
func (c *commandStats) CountError(text string) {
	word, _, _ := strings.Cut(text, " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors[word]++
}

// ErrorCounts returns the number of error replies by their first word, and their total. The caller owns the map.
func (c *commandStats) ErrorCounts() (byWord map[string]int64, total int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.errors {
		total += n
	}
	return maps.Clone(c.errors), total
}

// Processed returns the number of executed commands.
func (c *commandStats) Processed() (n int64) {
	for i := range c.by {
		n += c.by[i].Calls.Load()
	}
	return n
}

// Reset implements CONFIG RESETSTAT.
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
