package docker_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

const (
	// replyTimeout bounds one command to a node. Later answers are useless, because decisions turn UNKNOWN at that
	// age.
	replyTimeout = 5 * time.Second
	// composeTimeout bounds one compose command. A stop takes the longest, with 30 s of grace.
	composeTimeout = 2 * time.Minute
)

// cluster is a running compose file.
type cluster struct {
	run    func(args ...string) (string, error) // of compose
	addrs  map[string]string                    // by service: the address for clients on this machine
	ids    map[string]string                    // by service, of the container
	engine *engine
	leader string // as awaitLeader found it
}

// up starts the three nodes of compose.yaml.
func (e *engine) up(t *testing.T, image string) *cluster {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("of the test\n"), 0o444))
	ports := freePorts(t, 6)
	return e.compose(t, "compose.yaml", map[string]string{"a": ports[0], "b": ports[1], "c": ports[2]},
		"WEIR_IMAGE="+image, "WEIR_SECRET_FILE="+secret, "WEIR_PORT_A="+ports[0], "WEIR_PORT_B="+ports[1],
		"WEIR_PORT_C="+ports[2],
		"WEIR_HTTP_PORT_A="+ports[3], "WEIR_HTTP_PORT_B="+ports[4], "WEIR_HTTP_PORT_C="+ports[5])
}

// upSingle starts the one node of compose.single.yaml.
func (e *engine) upSingle(t *testing.T, image string) *cluster {
	t.Helper()
	ports := freePorts(t, 2)
	return e.compose(t, "compose.single.yaml", map[string]string{"weir": ports[0]},
		"WEIR_IMAGE="+image, "WEIR_PORT="+ports[0], "WEIR_HTTP_PORT="+ports[1])
}

// compose starts the services of a file, and removes every trace of them at the end.
func (e *engine) compose(t *testing.T, file string, ports map[string]string, env ...string) *cluster {
	t.Helper()
	project := fmt.Sprintf("weirtest%d", time.Now().UnixNano())
	words := compose(t)
	c := &cluster{engine: e, addrs: map[string]string{}, ids: map[string]string{}}
	c.run = func(args ...string) (string, error) {
		args = append(slices.Clone(words), append([]string{"--project-name", project, "--file", file}, args...)...)
		return e.command(composeTimeout, env, args...)
	}
	t.Cleanup(func() {
		if t.Failed() {
			logs, _ := c.run("logs", "--no-color", "--tail=30")
			t.Log(logs)
		}
		c.compose(t, "down", "--volumes", "--timeout=5")
	})
	c.compose(t, "up", "--detach", "--no-build")
	for service, port := range ports {
		c.addrs[service] = net.JoinHostPort("127.0.0.1", port)
		c.ids[service] = strings.TrimSpace(c.compose(t, "ps", "--quiet", service))
	}
	return c
}

func (c *cluster) compose(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.run(args...)
	require.NoError(t, err, "compose %v: %s", args, out)
	return out
}

// do sends one command on a new connection, as a client does after a crash.
func (c *cluster) do(node string, args ...any) (any, error) {
	conn, err := redis.Dial("tcp", c.addrs[node], redis.DialConnectTimeout(replyTimeout),
		redis.DialReadTimeout(replyTimeout), redis.DialWriteTimeout(replyTimeout))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.Do(args[0].(string), args[1:]...)
}

// others returns all nodes except one.
func (c *cluster) others(node string) (nodes []string) {
	for id := range c.addrs {
		if id != node {
			nodes = append(nodes, id)
		}
	}
	return nodes
}

// awaitLeader waits until a node knows a leader other than the former one.
func (c *cluster) awaitLeader(t *testing.T, former string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, node := range c.others(former) {
			info, err := redis.String(c.do(node, "INFO", "raft"))
			_, leader, _ := strings.Cut(info, "raft_leader_id:")
			leader, _, _ = strings.Cut(leader, "\r\n")
			if err == nil && leader != "" && leader != former {
				c.leader = leader
				return true
			}
		}
		return false
	}, patience, time.Second/4)
}

// awaitHealth waits until the engine's health checks report the nodes as ready.
func (c *cluster) awaitHealth(t *testing.T, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		require.Eventually(t, func() bool {
			health, err := c.engine.docker("inspect", "--format", "{{.State.Health.Status}}", c.ids[node])
			return err == nil && strings.TrimSpace(health) == "healthy"
		}, patience, time.Second)
	}
}

// freePorts returns ports of this machine that are free.
func freePorts(t *testing.T, n int) (ports []string) {
	t.Helper()
	for _, addr := range freeport.Addrs(t, n) {
		_, port, err := net.SplitHostPort(addr)
		require.NoError(t, err)
		ports = append(ports, port)
	}
	return ports
}

// ownFiles lists the files in the export of a container, without the files that the engine adds to every container.
func ownFiles(t *testing.T, path string) (names []string) {
	t.Helper()
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	for files := tar.NewReader(f); ; {
		file, err := files.Next()
		if errors.Is(err, io.EOF) {
			slices.Sort(names)
			return names
		}
		require.NoError(t, err)
		if top, _, _ := strings.Cut(file.Name, "/"); !slices.Contains(
			[]string{".dockerenv", "dev", "etc", "proc", "sys"}, top) {
			names = append(names, file.Name)
		}
	}
}

// command runs a program in the directory of the compose files, and returns its output.
func (e *engine) command(timeout time.Duration, env []string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	if e.host != "" {
		cmd.Env = append(cmd.Env, "DOCKER_HOST="+e.host)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
