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

// spent is the result that the Java program prints: tokens given, calls that failed, and whether an answer was wrong.
type spent struct {
	given, failed int
	wrong         bool
}

// spend runs the Java program, whose threads take tokens of one bucket of a server. It calls half when half of the
// capacity is spent.
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

// TestBucket4j checks that the unmodified Bucket4j, with Lettuce, gives concurrent threads exactly the tokens of a
// bucket. The bucket has a time to live, or none.
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

// TestBucket4jWhileTheLeaderDies kills the leader while the threads take tokens. They never get more tokens than the
// bucket has. Each token that nobody got belongs to a call that ended with an error.
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
