package clienttest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

var bucket4j = language{
	name: "limiters/bucket4j", tools: []string{"java", "javac", "mvn"},
	install: [][]string{{"mvn", "--quiet", "--batch-mode", "compile", "dependency:copy-dependencies"}},
	program: []string{"java", "-cp", "target/classes:target/dependency/*",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "Spend"},
}

// spent is what the program says in the end.
type spent struct {
	given, failed int
	wrong         bool
}

// spend runs the program against a server; half is called when half of the capacity is spent.
func spend(t *testing.T, addr string, expires bool, capacity, threads int, half func()) (all spent) {
	t.Helper()
	dir := bucket4j.prepare(t)
	var stderr bytes.Buffer
	argv := append(bucket4j.program[1:len(bucket4j.program):len(bucket4j.program)], addr, fmt.Sprint(expires),
		fmt.Sprint(capacity), fmt.Sprint(threads))
	cmd := exec.CommandContext(t.Context(), bucket4j.program[0], argv...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if lines.Text() == "HALF" {
			half()
			continue
		}
		_, err := fmt.Sscanf(lines.Text(), "given %d failed %d wrong %t", &all.given, &all.failed, &all.wrong)
		require.NoError(t, err, "%s", lines.Text())
	}
	require.NoError(t, cmd.Wait(), "%s", &stderr)
	return all
}

// TestBucket4j: Bucket4j on Lettuce, unchanged, gives exactly the tokens of a bucket to threads that
// race for them, with and without a time to live.
func TestBucket4j(t *testing.T) {
	skipWithoutClients(t)
	for _, expires := range []bool{false, true} {
		w := startWeir(t)
		all := spend(t, w.addr, expires, 3000, 16, func() {})
		require.Equal(t, spent{given: 3000}, all)
		ttl, err := w.ask("PTTL", "rate-limit:spend")
		require.NoError(t, err)
		require.Equal(t, expires, ttl.(int64) > 0, "%v", ttl)
	}
}

// TestBucket4jWhileTheLeaderDies: the leader is killed while the threads race. They never get more than
// the bucket has; what is missing are calls that ended with an error, each of which may have
// taken one.
func TestBucket4jWhileTheLeaderDies(t *testing.T) {
	skipWithoutClients(t)
	c := startCluster(t, nil)
	leader := c.leader()
	survivor := c.other(leader)
	all := spend(t, c.nodes[survivor].addr, true, 3000, 16, func() { c.nodes[leader].kill() })
	require.False(t, all.wrong)
	require.LessOrEqual(t, all.given, 3000)
	require.GreaterOrEqual(t, all.given+all.failed, 3000)
	t.Logf("%+v", all)
}

func skipWithoutClients(t *testing.T) {
	t.Helper()
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: limiter libraries of other languages run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
}
