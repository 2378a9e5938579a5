package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/cli/policy"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/limiter"
)

const loginPolicy = "policies:\n  login:\n    limits: [FIXED FOREVER 5]\n"

// TestPolicyFileOfAServer checks that a server reads its policy file at the start and at SIGHUP. A bad file prevents
// the start, and changes nothing at SIGHUP. Policies and their usage survive a restart.
func TestPolicyFileOfAServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("policies:\n  login:\n    limits: [FIXED soon 5]\n")
	require.Contains(t, refusal(t, serveCommand("--policies", path)),
		"policies.yaml:3: policy login: window must be like 30s")

	write(loginPolicy)
	dir := t.TempDir()
	p := start(t, "--policies", path, "--data-dir", dir)
	remaining := func(p *process) int64 {
		five, err := redis.Values(p.do("RL.CHECK", "login", "k"), nil)
		require.NoError(t, err)
		return five[1].(int64)
	}
	require.EqualValues(t, 4, remaining(p))

	write(strings.Replace(loginPolicy, "5", "five", 1))
	p.signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { return strings.Contains(p.output(), "no policy was changed") },
		patience, 10*time.Millisecond)
	require.EqualValues(t, 3, remaining(p))

	write(strings.Replace(loginPolicy, "5", "50", 1))
	p.signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { return strings.Count(p.output(), "the policies of the file are applied") >= 2 },
		patience, 10*time.Millisecond)
	require.EqualValues(t, 47, remaining(p), "a reload must keep the usage")
	p.stop()

	p = start(t, "--data-dir", dir)
	require.EqualValues(t, 46, remaining(p), "without the file the policies must come from the state")
	p.do("FLUSHALL")
	require.EqualValues(t, 49, remaining(p))
	p.stop()
}

// TestPolicyFileOfACluster checks that a node of a cluster compares its policy file with the policies of the cluster, and
// not with those that it has before it applies its log.
func TestPolicyFileOfACluster(t *testing.T) {
	path, dir := filepath.Join(t.TempDir(), "policies.yaml"), t.TempDir()
	run := func(text, changes string) *process {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		p := start(t, "--policies", path, "--data-dir", dir, "--durability", "fsync", "--raft-addr", "127.0.0.1:0")
		applied := func() bool { return strings.Contains(p.output(), "the policies of the file are applied") }
		require.Eventually(t, applied, patience, 10*time.Millisecond)
		require.Contains(t, p.output(), changes)
		return p
	}
	run("owner: team\n"+loginPolicy, `"changes":1`).stop()
	run("owner: team\n"+loginPolicy, `"changes":0`).stop()
	p := run("owner: other\n"+loginPolicy, `"changes":0`)
	require.Contains(t, p.output(), "belong to another owner")
	p.stop()
}

// TestPolicyCommands checks that diff predicts apply, that apply is one step, and that an exported file does not
// differ.
func TestPolicyCommands(t *testing.T) {
	p := start(t, "--test-clock") // the remaining time of an override does not change
	at := remote.Server{Addr: p.addr}
	path := filepath.Join(t.TempDir(), "policies.yaml")
	require.NoError(t, os.WriteFile(path, []byte(loginPolicy+"    overrides: [{key: vip, unlimited: true, ttl: 1h}]\n"),
		0o600))

	var out bytes.Buffer
	require.ErrorIs(t, (&policy.DiffCmd{Server: at, File: path}).Diff(&out), policy.ErrDiffers)
	require.Equal(t, "+ login LIMIT FIXED FOREVER 5\n+ login for vip UNLIMITED\n2 to change\n", out.String())
	require.NoError(t, (&policy.ApplyCmd{Server: at, File: path}).Apply(&out))
	out.Reset()
	require.NoError(t, (&policy.ApplyCmd{Server: at, File: path}).Apply(&out))
	require.Equal(t, "nothing changed\n", out.String())

	out.Reset()
	require.NoError(t, (&policy.ExportCmd{Server: at, Owner: policy.AnyOwner}).Export(&out))
	require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
	out.Reset()
	require.NoError(t, (&policy.DiffCmd{Server: at, File: path}).Diff(&out))

	before := p.do("RL.POLICY", "GET", "login")
	require.NoError(t, os.WriteFile(path, []byte(
		"policies: {new: {limits: [FIXED 1m 1]}, login: {limits: [FIXED 1m 1], overrides: [{limits: []}]}}"), 0o600))
	require.ErrorContains(t, (&policy.ApplyCmd{Server: at, File: path}).Apply(&out),
		"policies.yaml:1: policy login: an override needs a key")
	require.Equal(t, before, p.do("RL.POLICY", "GET", "login"))
	require.Equal(t, []any{[]byte("login")}, p.do("RL.POLICY", "LIST"))
	p.stop()
}

// oldCluster has a member that does not support the file's policies. It is upgraded after this many tries.
type oldCluster struct {
	limiter.Limiter
	tries int
}

func (*oldCluster) Policies() *engine.Policies { return new(engine.Policies) }

func (*oldCluster) Now() engine.Stamp { return engine.Stamp{} }

func (c *oldCluster) DecideAtomic([]engine.Op, []engine.Decision) error {
	if c.tries--; c.tries >= 0 {
		return limiter.ErrOldMember
	}
	return nil
}

// TestPoliciesThatWaitForAnUpgrade checks that policies which wait for an upgrade are logged once each time they
// begin to wait.
func TestPoliciesThatWaitForAnUpgrade(t *testing.T) {
	var said bytes.Buffer
	loader, err := openPolicies(configWith(t, loginPolicy), slog.New(slog.NewTextHandler(&said, nil)))
	require.NoError(t, err)
	for range 2 {
		said.Reset()
		node := &oldCluster{tries: 3}
		for range 3 {
			require.ErrorIs(t, loader.apply(node), limiter.ErrOldMember)
		}
		require.Equal(t, 1, strings.Count(said.String(), "level=WARN"), said.String())
		require.Contains(t, said.String(), "upgrade all nodes, and remove nodes that are gone")
		require.NoError(t, loader.apply(node))
	}
}
