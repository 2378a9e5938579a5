package server

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
	commands []*commandInfo // all, in the order in which they are shown
	by       []commandStat  // by commandInfo.slot

	authFailures atomic.Int64 // wrong passwords
	lockouts     atomic.Int64 // sources that failed so often that their logins wait
	authWaits    atomic.Int64 // logins that had to wait, or were refused, for earlier failures
	noPermission atomic.Int64 // commands and keys that a user may not use
	decisions    latency.Histogram

	mu     sync.Mutex
	errors map[string]int64 // by the word an error reply begins with
}

// commandStat fills a cache line, so that two busy commands do not share one.
type commandStat struct {
	calls, ns, rejected, failed atomic.Int64
	outcomes
	_ [2]int64
}

func newCommandStats(commands []*commandInfo) *commandStats {
	return &commandStats{commands: commands, by: make([]commandStat, len(commands)), errors: make(map[string]int64)}
}

// of returns the statistics of a command.
func (c *commandStats) of(cmd *commandInfo) *commandStat { return &c.by[cmd.slot] }

// eachUsed visits the commands that were ever called.
func (c *commandStats) eachUsed(visit func(*commandInfo, *commandStat)) {
	for _, cmd := range c.commands {
		stat := c.of(cmd)
		if stat.calls.Load()+stat.rejected.Load()+stat.failed.Load() > 0 {
			visit(cmd, stat)
		}
	}
}

// requests counts those of all commands since the start.
func (c *commandStats) requests() (allowed, limited int64) {
	c.eachUsed(func(_ *commandInfo, stat *commandStat) {
		allowed += stat.allowed.Load()
		limited += stat.limited.Load()
	})
	return allowed, limited
}

// count adds n calls that took so long together.
func (c *commandStats) count(cmd *commandInfo, n int, took time.Duration, failed bool) {
	stat := c.of(cmd)
	stat.calls.Add(int64(n))
	stat.ns.Add(int64(took))
	if failed {
		stat.failed.Add(1)
	}
}

// reject counts a command that was not carried out, fail one that did not succeed.
func (c *commandStats) reject(cmd *commandInfo) { c.of(cmd).rejected.Add(1) }
func (c *commandStats) fail(cmd *commandInfo)   { c.of(cmd).failed.Add(1) }

// countError counts the word of an error reply. The words are those of the
// error table, so the map stays small.
func (c *commandStats) countError(text string) {
	word, _, _ := strings.Cut(text, " ")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errors[word]++
}

func (c *commandStats) errorCounts() (byWord map[string]int64, total int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.errors {
		total += n
	}
	return maps.Clone(c.errors), total
}

// processed is the number of commands carried out.
func (c *commandStats) processed() (n int64) {
	for i := range c.by {
		n += c.by[i].calls.Load()
	}
	return n
}

// reset is CONFIG RESETSTAT.
func (c *commandStats) reset() {
	for i := range c.by {
		stat := &c.by[i]
		stat.calls.Store(0)
		stat.ns.Store(0)
		stat.rejected.Store(0)
		stat.failed.Store(0)
		stat.outcomes.reset()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.errors)
}
