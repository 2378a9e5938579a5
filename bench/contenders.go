package bench

import (
	_ "embed"
	"path/filepath"
)

//go:embed scripts/token_bucket.lua
var tokenBucketScript string

//go:embed scripts/sliding_log.lua
var slidingLogScript string

// Weir is weir as it runs by default: on disk, saved every second. binary is the
// weir to run; dir is a directory for its state.
func Weir(binary, dir string) Target {
	return Target{
		Name: "weir",
		Server: &Process{
			Binary: binary,
			Args: []string{"serve", "--listen", "127.0.0.1:" + portPlaceholder, "--http", "",
				"--data-dir", filepath.Join(dir, "weir-data")},
			LogFile: filepath.Join(dir, "weir.log"),
			Unset:   "WEIR_", // its defaults, not the user's
		},
		Commands: weirCommands(),
		Settle:   settleWeir,
	}
}

// settleWeir saves what changed; on a node of a cluster, in a snapshot.
var settleWeir = []string{"SAVE"}

// weirCommands says the workloads in weir's own words.
func weirCommands() map[Workload]Command {
	command := func(args ...string) Command {
		const integers = 5 // in weir's reply
		return Command{Args: args, Reply: decisionReply(integers)}
	}
	return map[Workload]Command{
		TokenBucket: command("RL.TOKENBUCKET", keyPlaceholder, "10", "20"),
		SlidingLog:  command("RL.SLIDING", keyPlaceholder, "10", "100"),
		Denied:      command("RL.TOKENBUCKET", keyPlaceholder, "1/h", "1"),
	}
}

// RedisLua is Redis without persistence, limiting by Lua scripts in the usual form.
func RedisLua(binary, dir string) Target {
	const decision = 3 // integers in the scripts' replies
	return Target{
		Name:   "redis+lua",
		Server: redis(binary, filepath.Join(dir, "redis-lua.log")),
		Commands: map[Workload]Command{
			TokenBucket: {
				Args:   []string{"EVALSHA", shaPlaceholder, "1", keyPlaceholder, "10", "20", "1"},
				Script: tokenBucketScript, Reply: decisionReply(decision),
			},
			SlidingLog: {
				Args:   []string{"EVALSHA", shaPlaceholder, "1", keyPlaceholder, "10", "100"},
				Script: slidingLogScript, Reply: decisionReply(decision),
			},
		},
	}
}

// RedisSet is a plain SET on Redis without persistence. It limits nothing: it shows
// what one write costs there at the very least.
func RedisSet(binary, dir string) Target {
	return Target{
		Name:   "redis SET",
		Server: redis(binary, filepath.Join(dir, "redis-set.log")),
		Commands: map[Workload]Command{
			TokenBucket: {Args: []string{"SET", keyPlaceholder, "x"}, Reply: okReply()},
		},
	}
}

func redis(binary, logFile string) *Process {
	return &Process{
		Binary: binary,
		Args: []string{"--bind", "127.0.0.1", "--port", portPlaceholder,
			"--save", "", "--appendonly", "no"},
		LogFile: logFile,
	}
}
