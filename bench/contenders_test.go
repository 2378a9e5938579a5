package bench

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/bench/servers"
)

// TestTargetsStartAndStop checks that each target starts, decides, reports its version, and leaves nothing behind.
func TestTargetsStartAndStop(t *testing.T) {
	tools := needTools(t)
	tools.Weir = buildWeir(t)
	contenders := Contenders{Tools: tools, Dir: t.TempDir()}
	for _, name := range []string{weirName, luaName, setName, replicasName, incrName, cellName, crabName, aloneName,
		leaderName} {
		t.Run(name, func(t *testing.T) {
			target, err := contenders.Target(name, "")
			if err != nil {
				require.ErrorIs(t, err, ErrToolMissing)
				t.Skip(err)
			}
			ctx := context.Background()
			require.NoError(t, target.Server.Start(ctx))
			pids := target.Server.PIDs()
			require.NotEmpty(t, pids)
			require.Len(t, target.Server.CommandLines(), len(pids))
			version, err := target.Server.Version(ctx)
			require.NoError(t, err)
			require.Regexp(t, `^(weir|redis|valkey|throttlecrab) ?.+`, version)
			one := cell{Entrant: Entrant{Load: bucket(2, 2)}, target: target}
			require.NoError(t, one.prepare(ctx))
			sample, err := one.measure(ctx, new(Builtin), 40, 0)
			require.NoError(t, err)
			require.Equal(t, 40, sample.Read)
			require.NoError(t, target.Server.Start(ctx), "what runs already stays as it is")
			require.Equal(t, pids, target.Server.PIDs())
			require.NoError(t, target.Server.Stop())
			for _, pid := range pids {
				require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, "process %d is gone", pid)
			}
			require.NoError(t, target.Server.Stop(), "twice is once")
		})
	}
}

// TestWeirHasItsWorkloads checks that weir answers the command of each of its workloads.
func TestWeirHasItsWorkloads(t *testing.T) {
	target, err := (&Contenders{Tools: Tools{Weir: buildWeir(t)}, Dir: t.TempDir()}).Target(weirName, "")
	require.NoError(t, err)
	ctx := context.Background()
	require.NoError(t, target.Server.Start(ctx))
	defer func() { require.NoError(t, target.Server.Stop()) }()
	for w := range weirCommands() {
		load := Load{Workload: w, Clients: 2, Pipeline: 2, Keys: 10}
		one := cell{Entrant: Entrant{Load: load}, target: target}
		if w == Denied {
			continue // an unused key is not denied
		}
		require.NoError(t, one.prepare(ctx), w)
		sample, err := one.measure(ctx, new(Builtin), 40, 0)
		require.NoError(t, err, w)
		require.Equal(t, 40, sample.Read, w)
	}
}

func TestReplicasHaveWhatThePrimaryHas(t *testing.T) {
	contenders := Contenders{Tools: needTools(t), Dir: t.TempDir()}
	target, err := contenders.Target(replicasName, "")
	require.NoError(t, err)
	require.NoError(t, target.Server.Start(context.Background()))
	t.Cleanup(func() { require.NoError(t, target.Server.Stop()) })
	require.NoError(t, servers.AskOnce(target.Server.Nodes()[0], "SET", "k", "v"))
	require.Len(t, target.Server.PIDs(), 3)
	for _, replica := range target.Server.(*servers.Replicated).Replicas {
		require.Eventually(t, func() bool { return haveKeys(replica.Nodes()[0], 1) == nil }, servers.ReadyTimeout,
			20*time.Millisecond)
	}
}

func TestMissingProgramsSayHowToGetThem(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	contenders := Contenders{Tools: FindTools("weir"), Dir: t.TempDir()}
	for name, hint := range map[string]string{luaName: "apt-get install", crabName: "cargo install"} {
		_, err := contenders.Target(name, "")
		require.ErrorIs(t, err, ErrToolMissing)
		require.ErrorContains(t, err, hint)
	}
	_, err := contenders.Target("memcached", "")
	require.ErrorIs(t, err, ErrUnknownName)
}

func TestValkeyServesInThePlaceOfRedis(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "valkey-server"), nil, 0o755))
	t.Setenv("PATH", dir)
	require.Equal(t, filepath.Join(dir, "valkey-server"), FindTools("").RedisServer)
}

func TestOneClusterAnInstance(t *testing.T) {
	c := Contenders{Dir: t.TempDir()}
	server := func(name, instance string) servers.Server {
		target, err := c.Target(name, instance)
		require.NoError(t, err)
		return processes(target.Server)
	}
	require.Same(t, server(leaderName, ""), server(followerName, ""))
	require.NotSame(t, server(leaderName, ""), server(osName, ""))
	require.NotSame(t, server(leaderName, ""), server(leaderName, "other"))
	require.NotSame(t, server(weirName, ""), server(weirName, ""))
}
