package chaos

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var upgradeFrom = flag.String("chaos.from", "HEAD^", "the revision that TestRollingUpgrade upgrades from")

const (
	// upgradeTime bounds the whole run. Six restarts take less.
	upgradeTime = 5 * time.Minute
	// mixedTime is how long both versions work together after each restart.
	mixedTime = time.Second
)

// TestRollingUpgrade replaces the nodes one by one under load, from an older weir to the current one. It also goes
// back to the older one if that version can read the current data format. Each node starts from a snapshot that the
// other version wrote. Clients must see only outcomes that they can safely repeat. In the end every node is killed
// and restarts as the current version, and the run must keep every chaos promise.
func TestRollingUpgrade(t *testing.T) {
	skipShort(t)
	older := buildRevision(t, *upgradeFrom)
	cfg := config(t, 3, calmHeartbeat)
	newer := cfg.Binary
	cfg.Binary = older
	back := dataFormat(t, older) == dataFormat(t, newer)
	t.Logf("the older weir reads what the newer stores: %v", back)
	rep, err := Run(t.Context(), RunConfig{
		Cluster:  cfg,
		Duration: upgradeTime,
		Seed:     theSeed(),
		Restless: true, // a node is down most of the time
		Patient:  true,
		Logf:     t.Logf,
		Meanwhile: func(ctx context.Context, c *Cluster) error {
			err := c.replaceAll(ctx, newer)
			if back {
				err = errors.Join(err, c.replaceAll(ctx, older))
			}
			for _, n := range c.Nodes {
				n.binary = newer
			}
			return err
		},
	})
	require.NoError(t, err)
	t.Log(rep)
	require.Zero(t, rep.Broken)
	require.Zero(t, rep.Totals.Refused, "%v", rep.Totals.Words)
	require.Equal(t, rep.Totals.Words[wordClosed], rep.Totals.Unknown,
		"unknown by other ways than a closed connection: %v", rep.Totals.Words)
	require.Empty(t, rep.SelfStops)
	require.Positive(t, rep.Totals.Allowed)
}

// replaceAll restarts every node as another program, one after the other, each from a snapshot that it takes first.
func (c *Cluster) replaceAll(ctx context.Context, binary string) error {
	for _, n := range c.Nodes {
		if _, err := n.Ask(transferTimeout, "WEIR.CLUSTER", "SNAPSHOT"); err != nil {
			return err
		}
		if err := n.Process().Stop(); err != nil {
			return fmt.Errorf("%s %w", n.ID, err)
		}
		n.binary = binary
		if err := errors.Join(n.Start(), n.AwaitReady(ctx), sleep(ctx, mixedTime)); err != nil {
			return err
		}
	}
	return nil
}

// dataFormat returns the formats that a program reports for the data directories that it creates: of a server that runs
// alone, and of a node.
func dataFormat(t *testing.T, binary string) string {
	t.Helper()
	version := regexp.MustCompile(`"Version":\d+`)
	node := formatFile(t, binary, "NODE", "--durability", "os", "--raft-addr", "127.0.0.1:0")
	return formatFile(t, binary, "FORMAT") + version.FindString(node)
}

// formatFile returns the content of a file that a program writes into its data directory.
func formatFile(t *testing.T, binary, name string, flags ...string) string {
	t.Helper()
	dir := t.TempDir()
	flags = append([]string{
		"serve", "--listen", "127.0.0.1:0", "--http", "", "--data-dir", filepath.Join(dir, "data"),
	}, flags...)
	p, err := startProcess(binary, filepath.Join(dir, "log"), flags, func(error) {})
	require.NoError(t, err)
	path := filepath.Join(dir, "data", name)
	require.Eventually(t, func() bool { _, err := os.Stat(path); return err == nil }, upgradeTime, 10*time.Millisecond)
	require.NoError(t, p.Stop())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// buildRevision compiles the server at a revision of this repository. It skips the test if the revision is missing,
// as in a shallow clone, or without git.
func buildRevision(t *testing.T, revision string) string {
	t.Helper()
	found, err := exec.Command("git", "rev-parse", "--verify", "--quiet", revision+"^{commit}").Output()
	if err != nil {
		t.Skipf("SKIPPED: revision %s to upgrade from is missing (%v): use a full clone", revision, err)
	}
	source, program := t.TempDir(), filepath.Join(t.TempDir(), "weir")
	script := `git -C "$(git rev-parse --show-toplevel)" archive "$1" | tar -x -C "$2" && cd "$2" && go build -o "$3" ./cmd/weir`
	build := exec.Command("sh", "-c", script, "sh", string(found[:len(found)-1]), source, program)
	build.Env = append(os.Environ(), "GOWORK=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "building %s: %s", revision, out)
	t.Logf("from %s: %s", revision, found)
	return program
}
