package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

// fillForBackup gives a server each kind of state that a backup must restore.
func fillForBackup(p *process) {
	p.do("RL.POLICY", "SET", "user", "LIMIT", "FIXED", "FOREVER", "10")
	p.do("RL.POLICY", "OVERRIDE", "user", "vip:*", "LIMIT", "FIXED", "FOREVER", "100")
	p.do("RL.CHECK", "user", "7", "COST", "4")
	p.five("RL.FIXED", "quota", "FOREVER", "10", "COST", "3")
	p.five("RL.TOKENBUCKET", "bucket", "1/1d", "10", "COST", "3")
	p.do("RL.BLOCK", "villain", "1h", "REASON", "abuse")
}

// holdsTheBackup checks that a server has the state of fillForBackup.
func holdsTheBackup(p *process) {
	p.t.Helper()
	check := func(key string) int64 {
		reply, err := redis.Values(p.do("RL.CHECK", "user", key, "COST", "0"), nil)
		require.NoError(p.t, err)
		return reply[1].(int64)
	}
	require.EqualValues(p.t, 6, check("7"))
	require.EqualValues(p.t, 100, check("vip:1"))
	require.EqualValues(p.t, 7, p.five("RL.FIXED", "quota", "FOREVER", "10", "COST", "0")[1])
	require.EqualValues(p.t, 7, p.five("RL.TOKENBUCKET", "bucket", "1/1d", "10", "COST", "0")[1])
	require.EqualValues(p.t, 0, p.five("RL.FIXED", "villain", "FOREVER", "10")[0])
}

// TestBackupAndRestore takes a backup under load. The backup holds everything that was answered before it began. It is
// restored to a server that runs alone, then to a cluster, then to a server that runs alone.
func TestBackupAndRestore(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "--data-dir="+filepath.Join(dir, "one"))
	fillForBackup(p)
	ledgers, done := load(p, "hot")
	key := ledgers[0].key
	before := p.waitForUnits(key, 1000)
	file := filepath.Join(dir, "hot.backup")
	require.Contains(t, weir(t, "backup", "--addr", p.addr, file), "hot.backup: ")
	p.stop()
	done.Wait()

	weir(t, "restore", file, "--data-dir", filepath.Join(dir, "two"))
	p = start(t, "--data-dir="+filepath.Join(dir, "two"))
	holdsTheBackup(p)
	require.GreaterOrEqual(t, p.used(key), before)

	cold := filepath.Join(dir, "cold.backup")
	weir(t, "backup", "--addr", p.addr, cold)
	p.stop()
	raft := freeport.Addr(t)
	weir(t, "restore", cold, "--data-dir", filepath.Join(dir, "a"), "--node-id=a", "--raft-addr="+raft)
	a := start(t, "--data-dir="+filepath.Join(dir, "a"), "--node-id=a", "--raft-addr="+raft)
	other := freeport.Addr(t)
	b := start(t, "--data-dir="+filepath.Join(dir, "b"), "--node-id=b", "--raft-addr="+other, "--join="+raft+","+other)
	require.Eventually(t, func() bool {
		reply, err := redis.Values(b.dial().Do("RL.CHECK", "user", "7", "COST", "0"))
		return err == nil && reply[1].(int64) == 6
	}, patience, 20*time.Millisecond)
	holdsTheBackup(a)
	holdsTheBackup(b)

	back := filepath.Join(dir, "cluster.backup")
	weir(t, "backup", "--addr", b.addr, back)
	b.stop()
	a.signal(9)
	weir(t, "restore", back, "--data-dir", filepath.Join(dir, "three"))
	holdsTheBackup(start(t, "--data-dir="+filepath.Join(dir, "three")))
}

// TestBackupAndRestoreOfGroups backs up a cluster of four Raft groups, and restores it into as many groups, into others,
// into one and to a server that runs alone.
func TestBackupAndRestoreOfGroups(t *testing.T) {
	dir := t.TempDir()
	raft := freeport.Addr(t)
	p := start(t, "--data-dir="+filepath.Join(dir, "four"), "--node-id=a", "--raft-addr="+raft, "--join="+raft,
		"--groups=4")
	p.led()
	fillForBackup(p)
	file := filepath.Join(dir, "four.backup")
	for _, groups := range []string{"4", "", "16", "1"} { // "": as many as the backup has
		require.Contains(t, weir(t, "backup", "--addr", p.addr, file), "four.backup: ")
		p.stop()
		name := "to" + groups
		raft = freeport.Addr(t)
		args := []string{"restore", file, "--data-dir", filepath.Join(dir, name), "--node-id=a", "--raft-addr=" + raft}
		if groups != "" {
			args = append(args, "--groups", groups)
		}
		weir(t, args...)
		require.NoError(t, os.Remove(file))
		p = start(t, "--data-dir="+filepath.Join(dir, name), "--node-id=a", "--raft-addr="+raft)
		p.led()
		require.Equal(t, groups != "1", strings.Contains(p.output(), "not those of --groups and --replicas"))
		holdsTheBackup(p)
		info, err := redis.String(p.do("INFO", "raft"), nil)
		require.NoError(t, err)
		want := map[string]string{"": "raft_groups:4", "4": "raft_groups:4", "16": "raft_groups:16", "1": "raft_nodes:1"}
		require.Contains(t, info, want[groups])
		if groups == "4" {
			weir(t, "backup", "--addr", p.addr, file+"2")
			weir(t, "restore", file+"2", "--data-dir", filepath.Join(dir, "alone"))
			holdsTheBackup(start(t, "--data-dir="+filepath.Join(dir, "alone")))
		}
	}
	p.stop()
	for _, flag := range []string{"--groups=4", "--end-holds"} {
		require.Contains(t, strings.ReplaceAll(refusal(t, exec.Command(binary, "restore", file+"2", "--data-dir",
			filepath.Join(dir, "alone2"), flag)), "\n", " "), "only a node of a cluster uses this")
	}
}

// led waits until every Raft group of the cluster has a leader.
func (p *process) led() {
	p.t.Helper()
	require.Eventually(p.t, func() bool {
		info, err := redis.String(p.dial().Do("INFO", "raft"))
		return err == nil && (strings.Contains(info, "raft_groups_leaderless:0") ||
			!strings.Contains(info, "raft_groups:") && strings.Contains(info, "raft_is_leader:1"))
	}, patience, 20*time.Millisecond)
}

// waitForUnits waits until this many units of a key have been granted.
func (p *process) waitForUnits(key string, n int64) (units int64) {
	p.t.Helper()
	require.Eventually(p.t, func() bool { units = p.used(key); return units >= n }, patience, time.Millisecond)
	return units
}

// TestBackupAndRestoreRefuse checks the refusals of both commands, and that they leave no file behind.
func TestBackupAndRestoreRefuse(t *testing.T) {
	dir := t.TempDir()
	file, data := filepath.Join(dir, "b"), filepath.Join(dir, "data")
	p := start(t, "--data-dir="+filepath.Join(dir, "one"))
	fillForBackup(p)
	weir(t, "backup", "--addr", p.addr, file)
	refuses := func(want string, args ...string) {
		t.Helper()
		require.Contains(t, strings.ReplaceAll(refusal(t, exec.Command(binary, args...)), "\n", " "), want)
	}
	refuses("exists already", "backup", "--addr", p.addr, file)
	require.NotContains(t, refusal(t, exec.Command(binary, "backup", filepath.Join(file, "below"))), "already")
	refuses("ERR this server keeps its state in memory only", "backup", "--addr", start(t, "--data-dir=").addr,
		file+"2")
	refuses("no such file", "restore", file+"2", "--data-dir", data)
	refuses("is not empty, and nothing was restored", "restore", file, "--data-dir", filepath.Join(dir, "one"))
	refuses("--raft-addr must be", "restore", file, "--data-dir", data, "--node-id=a", "--raft-addr=nowhere")

	whole, err := os.ReadFile(file)
	require.NoError(t, err)
	for name, harmed := range map[string][]byte{
		"short": whole[:len(whole)/2], "empty": nil,
		"flipped": append(append(whole[:2000:2000], whole[2000]^1), whole[2001:]...),
	} {
		bad := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(bad, harmed, 0o600))
		refuses("the backup is incomplete or damaged, and nothing was restored", "restore", bad, "--data-dir", data)
		refuses("the backup is incomplete or damaged, and nothing was restored", "restore", bad, "--data-dir", data,
			"--node-id=a")
	}
	require.NoDirExists(t, data)
	left, err := filepath.Glob(filepath.Join(dir, "*"+partSuffix))
	require.NoError(t, err)
	require.Empty(t, left)
	weir(t, "restore", file, "--data-dir", data)
	p.stop()
	holdsTheBackup(start(t, "--data-dir="+data))
}

// TestBackupThroughAPipe moves a complete backup through pipes.
func TestBackupThroughAPipe(t *testing.T) {
	dir := t.TempDir()
	p := start(t, "--data-dir="+filepath.Join(dir, "one"))
	fillForBackup(p)
	out, err := exec.Command(binary, "backup", "--addr", p.addr, "-").Output()
	require.NoError(t, err)
	in := exec.Command(binary, "restore", "-", "--data-dir", filepath.Join(dir, "two"))
	in.Stdin = strings.NewReader(string(out))
	said, err := in.CombinedOutput()
	require.NoError(t, err, "%s", said)
	holdsTheBackup(start(t, "--data-dir="+filepath.Join(dir, "two")))
}
