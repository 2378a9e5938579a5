package bench

import (
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/weir-project/weir/bench/servers"
)

//go:embed scripts/token_bucket.lua
var tokenBucketScript string

//go:embed scripts/sliding_log.lua
var slidingLogScript string

// These are the names of the targets in scenarios, tables and flags.
const (
	weirName        = "weir"
	baseName        = "weir base"
	luaName         = "redis+lua"
	setName         = "redis SET"
	replicasName    = "redis+lua, 2 replicas"
	incrName        = "redis INCR"
	cellName        = "redis-cell"
	crabName        = "throttlecrab"
	cellThreadsName = "redis-cell, 2 io-threads"
	valkeyCellName  = "redis-cell on Valkey"
	valkeySetName   = "valkey SET"
	aloneName       = "weir x1 fsync"
	leaderName      = "weir x3 fsync"
	followerName    = "weir x3 fsync, follower"
	osName          = "weir x3 os"
	fiveName        = "weir x5 fsync"
)

// Contenders makes targets by name.
type Contenders struct {
	Tools Tools
	Dir   string // for state and logs

	clusters map[string]*servers.Cluster
	made     int
}

// Target returns a new target, or the reason why it is not available. Targets with the same instance share a cluster
// of the same size and durability.
func (c *Contenders) Target(name, instance string) (Target, error) {
	t, err := c.target(name, instance)
	t.Name = name
	return t, err
}

func (c *Contenders) target(name, instance string) (Target, error) {
	switch name {
	case weirName:
		return c.weirTarget(c.Tools.Weir), nil
	case baseName:
		if c.Tools.Base == "" {
			return Target{}, missing(baseName, "name it with --base")
		}
		return c.weirTarget(c.Tools.Base), nil
	case aloneName:
		return c.clustered(instance, 1, "fsync")
	case leaderName:
		return c.clustered(instance, clusterSize, "fsync")
	case osName:
		return c.clustered(instance, clusterSize, "os")
	case fiveName:
		return c.clustered(instance, clusterSize+2, "fsync")
	case followerName:
		t, err := c.clustered(instance, clusterSize, "fsync")
		t.Server = servers.Follower{Cluster: t.Server.(*servers.Cluster)}
		return t, err
	case crabName:
		return c.throttlecrab()
	default:
		return c.redisTarget(name)
	}
}

// path returns a name for a file or a directory that no other server of the run uses.
func (c *Contenders) path(name string) string {
	c.made++
	return filepath.Join(c.Dir, fmt.Sprintf("%s-%d", name, c.made))
}

// moreClients allows mostClients while the server has not yet noticed the end of the previous load's connections.
const moreClients = "15000"

// weir is weir with its defaults: on disk, saved every second.
func (c *Contenders) weir(binary string) *servers.Process {
	path := c.path("weir")
	return &servers.Process{
		Binary: binary,
		Args: []string{"serve", "--listen", "127.0.0.1:" + servers.PortPlaceholder, "--http", "", "--max-clients",
			moreClients, "--data-dir", path},
		LogFile: path + ".log",
		Unset:   "WEIR_", // its defaults, not the user's
	}
}

func (c *Contenders) weirTarget(binary string) Target {
	return Target{Server: c.weir(binary), Commands: weirCommands(), Settle: settleWeir}
}

// settleWeir saves changes; on a node of a cluster it writes a snapshot.
var settleWeir = []string{"SAVE"}

// weirCommands returns the workloads as commands of weir.
func weirCommands() map[Workload]Command {
	const elements = 5 // of weir's reply
	command := func(args ...string) Command {
		return Command{Args: args, Reply: decisionReply(elements)}
	}
	check := command("RL.CHECK", "four", keyPlaceholder)
	check.Reply = decisionReply(elements + 1) // with the name of the policy
	check.Before = strings.Fields("RL.POLICY SET four LIMIT TOKENBUCKET 1/h 1000000 LIMIT TOKENBUCKET 1/m 1000000 " +
		"LIMIT FIXED 1h 1000000000 LIMIT SLIDINGCOUNTER 1d 1000000000")
	return map[Workload]Command{
		TokenBucket: command("RL.TOKENBUCKET", keyPlaceholder, "10", "20"),
		SlidingLog:  command("RL.SLIDING", keyPlaceholder, "10", "100"),
		Denied:      command("RL.TOKENBUCKET", keyPlaceholder, "1/h", "1"),
		Lasting:     command("RL.TOKENBUCKET", keyPlaceholder, "1/h", "1000000"),
		Checked:     check,
	}
}

// throttlecrab understands only THROTTLE, PING and QUIT.
func (c *Contenders) throttlecrab() (Target, error) {
	if c.Tools.ThrottleCrab == "" {
		return Target{}, missing("throttlecrab-server", rivalsHint+", as does cargo install throttlecrab-server")
	}
	command := func(burst, count, period string) Command {
		return Command{Args: []string{"THROTTLE", keyPlaceholder, burst, count, period, "1"},
			Reply: decisionReply(5)}
	}
	return Target{
		Server: &servers.Process{
			Binary:  c.Tools.ThrottleCrab,
			Args:    []string{"--redis", "--redis-host", "127.0.0.1", "--redis-port", servers.PortPlaceholder},
			LogFile: c.path("throttlecrab") + ".log", Bare: true,
		},
		Keeps: true,
		Commands: map[Workload]Command{
			TokenBucket: command("20", "10", "1"),
			Denied:      command("1", "1", "3600"),
			Lasting:     command("1000000", "1", "3600"),
		},
	}, nil
}
