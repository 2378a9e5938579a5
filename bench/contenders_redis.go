package bench

import (
	"fmt"
	"path/filepath"

	"github.com/weir-project/weir/bench/servers"
)

// redisTarget returns a target that limits with Redis or Valkey, without persistence.
func (c *Contenders) redisTarget(name string) (Target, error) {
	makers := map[string]func() (Target, error){
		luaName:      func() (Target, error) { return Target{Server: c.redis(), Commands: luaCommands()}, nil },
		setName:      func() (Target, error) { return Target{Server: c.redis(), Commands: setCommands()}, nil },
		replicasName: func() (Target, error) { return Target{Server: c.replicated(), Commands: luaCommands()}, nil },
		incrName:     func() (Target, error) { return Target{Server: c.redis(), Commands: incrCommands()}, nil },
		cellName:     func() (Target, error) { return c.redisCell(c.redis) },
		cellThreadsName: func() (Target, error) {
			return c.redisCell(func(more ...string) *servers.Process {
				return c.redis(append(more, "--io-threads", "2")...)
			})
		},
		valkeyCellName: func() (Target, error) { return c.redisCell(c.valkey) },
		valkeySetName:  func() (Target, error) { return Target{Server: c.valkey(), Commands: setCommands()}, nil },
	}
	make, ok := makers[name]
	if !ok {
		return Target{}, fmt.Errorf("%w: target %q", ErrUnknownName, name)
	}
	onValkey := name == valkeyCellName || name == valkeySetName
	if onValkey && c.Tools.Valkey == "" {
		return Target{}, missing("valkey-server", rivalsHint)
	}
	if !onValkey && c.Tools.RedisServer == "" {
		return Target{}, missing("redis-server", redisHint)
	}
	return make()
}

func (c *Contenders) redis(more ...string) *servers.Process {
	return c.redisLike(c.Tools.RedisServer, more)
}

func (c *Contenders) valkey(more ...string) *servers.Process {
	return c.redisLike(c.Tools.Valkey, more)
}

func (c *Contenders) redisLike(binary string, more []string) *servers.Process {
	log := c.path("redis") + ".log"
	return &servers.Process{
		Binary: binary,
		Args: append([]string{
			"--bind", "127.0.0.1", "--port", servers.PortPlaceholder, "--save", "", "--appendonly", "no",
			// a replica stores the data of its primary there
			"--dir", filepath.Dir(log), "--dbfilename", servers.PortPlaceholder + ".rdb",
		}, more...),
		LogFile: log,
	}
}

// luaCommands limit by scripts in the usual form.
func luaCommands() map[Workload]Command {
	command := func(script string, args ...string) Command {
		const elements = 3 // of the scripts' replies
		return Command{
			Args:   append(append([]string{"EVALSHA", shaPlaceholder, "1", keyPlaceholder}, args...), "1"),
			Script: script, Reply: decisionReply(elements),
		}
	}
	const anHourly = "0.00027777777777777778" // one unit an hour, in units a second
	return map[Workload]Command{
		TokenBucket: command(tokenBucketScript, "10", "20"),
		SlidingLog:  command(slidingLogScript, "10", "100"),
		Denied:      command(tokenBucketScript, anHourly, "1"),
		Lasting:     command(tokenBucketScript, anHourly, "1000000"),
	}
}

// setCommands do not limit. They show the minimum cost of one write.
func setCommands() map[Workload]Command {
	return map[Workload]Command{
		TokenBucket: {Args: []string{"SET", keyPlaceholder, "x"}, Reply: okReply()},
	}
}

// incrCommands count and do not limit.
func incrCommands() map[Workload]Command {
	return map[Workload]Command{TokenBucket: {Args: []string{"INCR", keyPlaceholder}, Reply: countReply()}}
}

// redisCell is a server with the module redis-cell. Its burst does not count the first request.
func (c *Contenders) redisCell(server func(more ...string) *servers.Process) (Target, error) {
	if c.Tools.RedisCell == "" {
		return Target{}, missing("the module libredis_cell.so", rivalsHint)
	}
	command := func(burst, count, period string) Command {
		return Command{Args: []string{"CL.THROTTLE", keyPlaceholder, burst, count, period, "1"},
			Reply: limitedReply(5)}
	}
	return Target{
		Server: server("--loadmodule", c.Tools.RedisCell),
		Commands: map[Workload]Command{
			TokenBucket: command("19", "10", "1"),
			Denied:      command("0", "1", "3600"),
			Lasting:     command("999999", "1", "3600"),
		},
	}, nil
}

// replicated is a Redis with two replicas. It does not wait for them.
func (c *Contenders) replicated() *servers.Replicated {
	return &servers.Replicated{Primary: c.redis("--repl-diskless-sync-delay", "0"),
		Replicas: []*servers.Process{c.redis(), c.redis()}}
}
