package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/cli/policy"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/policyfile"
)

// team is the policy file of a team and the server that it is applied to.
type team struct {
	t    *testing.T
	at   remote.Server
	path string
}

// newTeam writes a policy file. An empty owner makes a file without an owner.
func newTeam(t *testing.T, addr, owner, policies string) *team {
	x := &team{t, remote.Server{Addr: addr}, filepath.Join(t.TempDir(), owner+".yaml")}
	x.write(owner, policies)
	return x
}

func (x *team) write(owner, policies string) {
	if owner != "" {
		owner = "owner: " + owner + "\n"
	}
	require.NoError(x.t, os.WriteFile(x.path, []byte(owner+"policies: {"+policies+"}\n"), 0o600))
}

func (x *team) apply(change func(*policy.ApplyCmd)) (string, error) {
	var out bytes.Buffer
	cmd := &policy.ApplyCmd{Server: x.at, File: x.path}
	if change != nil {
		change(cmd)
	}
	err := cmd.Apply(&out)
	return out.String(), err
}

func (x *team) applied(change func(*policy.ApplyCmd)) string {
	x.t.Helper()
	said, err := x.apply(change)
	require.NoError(x.t, err, said)
	return said
}

func (x *team) diff() (string, error) {
	var out bytes.Buffer
	err := (&policy.DiffCmd{Server: x.at, File: x.path}).Diff(&out)
	return out.String(), err
}

func (x *team) same() {
	x.t.Helper()
	said, err := x.diff()
	require.NoError(x.t, err, said)
	require.Equal(x.t, "nothing to change\n", said)
}

func prune(cmd *policy.ApplyCmd)    { cmd.Prune = true }
func dryRun(cmd *policy.ApplyCmd)   { cmd.DryRun = true }
func takeOver(cmd *policy.ApplyCmd) { cmd.TakeOver = true }

// TestWhatAFileLacks checks policies that the file does not contain. diff reports them, apply keeps them unless it
// prunes, and a dry run changes nothing.
func TestWhatAFileLacks(t *testing.T) {
	p := start(t, "--test-clock")
	x := newTeam(t, p.addr, "", "a: {limits: [FIXED 1m 1]}")
	for _, command := range []string{
		"SET a LIMIT FIXED 1m 1", "SET b LIMIT FIXED 1m 2", "OVERRIDE a vip UNLIMITED",
		"OVERRIDE a guest LIMIT FIXED 1m 9 TTL 1h",
	} {
		p.do("RL.POLICY", remote.Args(strings.Fields(command))...)
	}
	said, err := x.diff()
	require.ErrorIs(t, err, policy.ErrDiffers)
	require.Equal(t, "- a for vip UNLIMITED\n- b LIMIT FIXED 1m 2\n0 to change, 2 not in the file\n", said)
	require.Equal(t, "nothing changed\n  a for vip UNLIMITED\n  b LIMIT FIXED 1m 2\n2 not in the file: --prune "+
		"removes them\n", x.applied(nil))

	before := p.do("RL.POLICY", "GET", "a")
	both := func(cmd *policy.ApplyCmd) { cmd.Prune, cmd.DryRun = true, true }
	require.Equal(t, "- a for vip UNLIMITED\n- b LIMIT FIXED 1m 2\n2 to change, nothing was changed (--dry-run)\n",
		x.applied(both))
	require.Equal(t, before, p.do("RL.POLICY", "GET", "a"))
	require.Contains(t, x.applied(prune), "2 changed\n")
	x.same()
	require.Equal(t, "nothing changed\n", x.applied(prune), "a second apply must change nothing")
	require.Equal(t, []any{[]byte("a")}, p.do("RL.POLICY", "LIST"))
	require.Contains(t, fmt.Sprintf("%s", p.do("RL.POLICY", "GET", "a")), "guest",
		"an override that expires must stay")
	x.write("", "a: {limits: [FIXED 1m 7]}, c: {limits: [FIXED 1m 1]}")
	require.Contains(t, x.applied(dryRun), "2 to change, nothing was changed")
	require.Equal(t, []any{[]byte("a")}, p.do("RL.POLICY", "LIST"))
	p.stop()
}

// TestExitCodesOfDiff checks that weir policy diff has the exit codes of the program diff.
func TestExitCodesOfDiff(t *testing.T) {
	p := start(t)
	x := newTeam(t, p.addr, "team-a", "a: {limits: [FIXED 1m 1]}")
	for _, c := range []struct {
		file string
		want int
		says string
	}{{x.path, 1, "+ a LIMIT FIXED 1m 1 OWNER team-a\n1 to change\n"}, {"none.yaml", 2, "weir: error: bad policy file"},
		{x.path, 0, "nothing to change\n"}} {
		out, err := exec.Command(binary, "policy", "diff", "-f", c.file, "--addr="+p.addr).CombinedOutput()
		code := 0
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			code = failed.ExitCode()
		}
		require.Equal(t, c.want, code, "%s", out)
		require.True(t, strings.HasPrefix(string(out), c.says), "%s", out)
		x.applied(nil)
	}
	p.stop()
}

// TestFilesOfSeveralTeams checks that a file sees only the policies of its owner, and takes over others only with the
// flag. Owners survive a restart.
func TestFilesOfSeveralTeams(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "--data-dir", dir)
	p.do("RL.POLICY", "SET", "old", "LIMIT", "FIXED", "1m", "1")
	a := newTeam(t, p.addr, "team-a", "a1: {limits: [FIXED 1m 1]}, a2: {limits: [FIXED 1m 1]}")
	b := newTeam(t, p.addr, "team-b", "b1: {limits: [FIXED 1m 1]}")
	a.applied(prune)
	b.applied(prune)
	a.same()
	b.same()
	require.Equal(t, []any{[]byte("a1"), []byte("a2"), []byte("b1"), []byte("old")}, p.do("RL.POLICY", "LIST"))

	b.write("team-b", "b1: {limits: [FIXED 1m 1]}, a1: {limits: [FIXED 1m 9]}, b2: {limits: [FIXED 1m 1]}")
	for _, change := range []func(*policy.ApplyCmd){nil, prune, dryRun} {
		_, err := b.apply(change)
		require.ErrorIs(t, err, policyfile.ErrOwner)
		require.ErrorContains(t, err, "team-b.yaml:2: policy a1 belongs to team-a, and this file to team-b")
	}
	_, err := b.diff()
	require.ErrorIs(t, err, policyfile.ErrOwner)
	require.Len(t, p.do("RL.POLICY", "LIST"), 4, "a refused apply must not change anything")
	require.Contains(t, b.applied(takeOver), "- a1 LIMIT FIXED 1m 1 OWNER team-a\n+ a1 LIMIT FIXED 1m 9 OWNER team-b\n")
	b.same()
	a.write("team-a", "a2: {limits: [FIXED 1m 1]}")
	a.same()

	a.write("team-a", "old: {limits: [FIXED 1m 1]}")
	require.Equal(t, "- a2 LIMIT FIXED 1m 1 OWNER team-a\n- old LIMIT FIXED 1m 1\n+ old LIMIT FIXED 1m 1 OWNER "+
		"team-a\n2 changed\n", a.applied(prune), "nobody's becomes the file's")
	nobody := newTeam(t, p.addr, "", "old: {limits: [FIXED 1m 1]}")
	_, err = nobody.apply(nil)
	require.ErrorContains(t, err, "policy old belongs to team-a, and this file to no owner (it has no field owner)")
	p.stop()

	p = start(t, "--data-dir", dir, "--policies", nobody.path)
	require.Contains(t, p.output(), "policies of the file belong to another owner")
	a.at.Addr, b.at.Addr, nobody.at.Addr = p.addr, p.addr, p.addr
	a.same()
	b.same()
	nobody.applied(takeOver)
	nobody.same()
	require.Equal(t, []any{[]byte("old")}, p.do("RL.POLICY", "LIST", "OWNER", "NONE"))
	b.write("team-b", "")
	b.applied(prune)
	require.Equal(t, []any{[]byte("old")}, p.do("RL.POLICY", "LIST"))
	p.stop()
}

// TestExportOfOneOwner checks that an exported file does not differ from the server, and has one owner.
func TestExportOfOneOwner(t *testing.T) {
	p := start(t)
	a := newTeam(t, p.addr, "team-a", "a: {limits: [FIXED 1m 1]}")
	a.applied(nil)
	export := func(owner string) (string, error) {
		var out bytes.Buffer
		err := (&policy.ExportCmd{Server: a.at, Owner: owner}).Export(&out)
		return out.String(), err
	}
	said, err := export(policy.AnyOwner)
	require.NoError(t, err)
	require.Equal(t, "owner: team-a\npolicies:\n  a:\n    limits:\n      - FIXED 1m 1\n", said)
	require.NoError(t, os.WriteFile(a.path, []byte(said), 0o600))
	a.same()
	p.do("RL.POLICY", "SET", "b", "LIMIT", "FIXED", "1m", "1")
	_, err = export(policy.AnyOwner)
	require.ErrorContains(
		t, err, "the policies have 2 owners, but a file has one owner: export each owner separately, with --owner=, "+
			"--owner=team-a")
	said, err = export("team-a")
	require.NoError(t, err)
	require.Contains(t, said, "owner: team-a")
	said, err = export("")
	require.NoError(t, err)
	require.Equal(t, "policies:\n  b:\n    limits:\n      - FIXED 1m 1\n", said)
	p.stop()
}

// TestTeamsThatApplyAtOnce checks that concurrent applies are atomic, and that every file is in force in the end.
func TestTeamsThatApplyAtOnce(t *testing.T) {
	p := start(t)
	var all sync.WaitGroup
	teams := make([]*team, 4)
	for i := range teams {
		teams[i] = newTeam(t, p.addr, fmt.Sprint("team-", i), "")
	}
	for round := range 10 {
		for i, x := range teams {
			x.write(fmt.Sprint("team-", i), fmt.Sprintf("p%d: {limits: [FIXED 1m %d]}, q%d-%d: {limits: [FIXED 1m 1]}",
				i, round+1, i, round))
			all.Go(func() { _, err := x.apply(prune); require.NoError(t, err) })
		}
		all.Wait()
		for _, x := range teams {
			x.same()
		}
	}
	require.Len(t, p.do("RL.POLICY", "LIST"), 2*len(teams))
	p.stop()
}

// TestAChangeBetweenReadingAndWriting checks that a change between the read and the write of an apply refuses the
// write. Nothing is changed, and the next apply succeeds.
func TestAChangeBetweenReadingAndWriting(t *testing.T) {
	p := start(t)
	x := newTeam(t, p.addr, "team-a", "a: {limits: [FIXED 1m 1]}, b: {limits: [FIXED 1m 1]}")
	x.applied(nil)
	x.write("team-a", "b: {limits: [FIXED 1m 2]}")
	file, err := policyfile.Open(x.path)
	require.NoError(t, err)
	conn, err := x.at.Dial(p.addr, "")
	require.NoError(t, err)
	defer conn.Close()
	s := &policy.Server{Conn: conn}
	now, err := s.Policies()
	require.NoError(t, err)
	newTeam(t, p.addr, "team-b", "a: {limits: [FIXED 1m 1]}").applied(takeOver)
	require.ErrorIs(t, s.Change(file.Compare(now).Commands(true)), policy.ErrChanged)
	said, err := x.diff()
	require.ErrorIs(t, err, policy.ErrDiffers)
	require.Equal(t, "- b LIMIT FIXED 1m 1 OWNER team-a\n+ b LIMIT FIXED 1m 2 OWNER team-a\n1 to change\n", said,
		"the refused change must not change anything")
	require.Equal(t, []any{[]byte("a")}, p.do("RL.POLICY", "LIST", "OWNER", "team-b"))
	x.applied(prune)
	x.same()
	p.stop()
}

// TestOwnersInACluster checks that every node has the owners, and that a restored backup has them too.
func TestOwnersInACluster(t *testing.T) {
	nodes := startCluster(t, 3)
	a := newTeam(t, nodes[0].addr, "team-a", "a: {limits: [FIXED 1m 1]}")
	b := newTeam(t, nodes[1].addr, "team-b", "b: {limits: [FIXED 1m 1]}")
	a.applied(nil)
	b.applied(nil)
	for _, n := range nodes {
		a.at.Addr, b.at.Addr = n.addr, n.addr
		a.same()
		b.same()
	}
	file, dir := filepath.Join(t.TempDir(), "state"), filepath.Join(t.TempDir(), "data")
	out, err := exec.Command(binary, "backup", "--addr="+nodes[2].addr, file).CombinedOutput()
	require.NoError(t, err, "%s", out)
	out, err = exec.Command(binary, "restore", file, "--data-dir="+dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	p := start(t, "--data-dir", dir)
	a.at.Addr, b.at.Addr = p.addr, p.addr
	a.same()
	b.same()
	p.stop()
}

// TestThePolicyFileOfAServerHasAnOwner checks that the policies of a server's policy file get the owner of the file,
// also after a reload.
func TestThePolicyFileOfAServerHasAnOwner(t *testing.T) {
	x := newTeam(t, "", "ops", "a: {limits: [FIXED 1m 1]}")
	p := start(t, "--policies", x.path)
	x.at.Addr = p.addr
	x.same()
	x.write("ops", "a: {limits: [FIXED 1m 2]}")
	p.signal(syscall.SIGHUP)
	require.Eventually(t, func() bool { return strings.Count(p.output(), "the policies of the file are applied") >= 2 },
		patience, 10*time.Millisecond)
	x.same()
	p.stop()
}
