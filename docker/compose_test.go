// Package docker_test tests the image and the compose files: three nodes run as containers, one of them is killed, and
// no unit is lost.
//
// The tests use any Docker engine that answers. If there is none and the user is root, they start one. They need no
// registry, because the last stage of the Dockerfile gets a binary that is built here. WEIRTEST_IMAGE names another
// image to test, such as the image of "make docker".
package docker_test

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

const (
	// patience bounds every wait: for an election, for a health check every 10 s, for a node that catches up. It is
	// far longer than each of them takes.
	patience = time.Minute
	// limit is larger than the number of units that the test takes, of a bucket that refills by one in 4 months. So
	// the remaining units show how many were counted.
	limit = 1000
	// burst is the number of units that each part of the test takes.
	burst = 100
)

// TestCompose runs a cluster of containers, kills a node and restarts all.
func TestCompose(t *testing.T) {
	e := findEngine(t)
	c := e.up(t, e.image(t))
	c.awaitLeader(t, "")
	c.awaitHealth(t, "a", "b", "c")
	left := c.take(t, limit, "a", "b", "c")

	led := c.leader
	e.must(t, "kill", c.ids[led])
	others := c.others(led)
	c.awaitLeader(t, led)
	left = c.take(t, left, others...)

	e.must(t, "start", c.ids[led])
	c.awaitHealth(t, led)
	c.awaitRemaining(t, led, left)
	left = c.take(t, left, led)

	// All at once, as in an update of the machine.
	c.compose(t, "stop")
	c.compose(t, "start")
	c.awaitLeader(t, "")
	require.Equal(t, limit-4*burst, c.take(t, left, "a", "b", "c"))
}

// take takes burst units one by one, from each node in turn, and returns how many remain. Each reply must follow from
// the last.
func (c *cluster) take(t *testing.T, left int, nodes ...string) int {
	t.Helper()
	for i := range burst {
		allowed, remaining := c.takeOne(t, nodes[i%len(nodes)], strconv.Itoa(left))
		require.Equal(t, 1, allowed)
		left--
		require.Equal(t, left, remaining)
	}
	return left
}

// takeOne takes a unit with an ID, so that a retry after an error counts once.
func (c *cluster) takeOne(t *testing.T, node, id string) (allowed, remaining int) {
	t.Helper()
	require.Eventually(t, func() bool {
		reply, err := redis.Ints(c.do(node, "RL.TOKENBUCKET", "user:42", "1/10000000s", limit, "ID", "take-"+id))
		if err != nil {
			t.Logf("node %s: %v", node, err)
			return false
		}
		allowed, remaining = reply[0], reply[1]
		return true
	}, patience, time.Second)
	return allowed, remaining
}

// awaitRemaining waits until a node's own state shows the given number of remaining units.
func (c *cluster) awaitRemaining(t *testing.T, node string, left int) {
	t.Helper()
	require.Eventually(t, func() bool {
		var state struct {
			Remaining int `redis:"remaining"`
		}
		fields, err := redis.Values(c.do(node, "RL.INSPECT", "user:42"))
		return err == nil && redis.ScanStruct(fields, &state) == nil && state.Remaining == left
	}, patience, time.Second/4)
}

// TestImage checks that the image contains only weir, does not run as root, and explains why it does not start
// without a password.
func TestImage(t *testing.T) {
	e := findEngine(t)
	image := e.image(t)
	require.Equal(t, "65532:65532", e.must(t, "image", "inspect", "--format", "{{.Config.User}}", image))
	require.Contains(t, e.must(t, "run", "--rm", "--network=none", "--read-only", image, "version"), "weir ")

	out, err := e.docker("run", "--rm", "--network=none", "--read-only", image)
	require.Error(t, err)
	require.Contains(t, out, "refusing to listen beyond this machine without a password")

	id := e.must(t, "create", "--network=none", image)
	t.Cleanup(func() { e.must(t, "rm", "--volumes", id) })
	file := filepath.Join(t.TempDir(), "image.tar")
	e.must(t, "export", "--output", file, id)
	require.Equal(t, []string{"data/", "usr/", "usr/local/", "usr/local/bin/", "usr/local/bin/weir"}, ownFiles(t, file))
}

// TestComposeSingle checks that one node writes only to its volume, with a read-only root file system.
func TestComposeSingle(t *testing.T) {
	e := findEngine(t)
	c := e.upSingle(t, e.image(t))
	c.awaitHealth(t, "weir")
	left := c.take(t, limit, "weir")
	c.compose(t, "stop")
	c.compose(t, "start")
	require.Equal(t, limit-2*burst, c.take(t, left, "weir"))
}
