package clienttest

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
)

// goClusterClients are the Go clients, and redis-cli. Only one client of each library may run at a time, because all
// clients of a library share one log.
func goClusterClients(t *testing.T) []clientKind {
	hook := new(logHook)
	redis.SetLogger(hook)
	return []clientKind{
		{name: "go-redis", dial: dialGoRedisCluster, learns: true, callers: 4, resends: true, remembersDeath: true,
			complaints: hook.take, lost: aboutConnections.MatchString},
		{name: "rueidis", dial: dialRueidisCluster, learns: true, callers: 4},
		{name: "redis-cli", dial: dialRedisCLI, callers: 2, stateless: true},
	}
}

// aboutConnections matches the lines that clients log about a connection that ended or failed, and the lines of their
// stack traces.
var aboutConnections = regexp.MustCompile(`(?i)connection (refused|reset)|ECONNREFUSED|ECONNRESET|EOF|broken pipe|error with connection|unexpected end of stream|^\s+at |^Caused by: java\.(net|io)\.|JedisConnectionException|SentinelListener|sentinels are unreachable`)

type goRedisCluster struct {
	ctx context.Context
	*redis.ClusterClient
}

// goRedisReload is the only setting that differs from the defaults of go-redis. A lost connection alone does not make
// go-redis read the map of slots again. By default (0) it calls a dead node until its map is a minute old.
const goRedisReload = time.Second

func dialGoRedisCluster(t *testing.T, seeds []string) clusterClient {
	return goRedisCluster{t.Context(),
		redis.NewClusterClient(&redis.ClusterOptions{Addrs: seeds, ClusterStateReloadInterval: goRedisReload})}
}

type goRedisSentinel struct {
	ctx context.Context
	*redis.Client
}

func dialGoRedisSentinel(t *testing.T, seeds []string) clusterClient {
	return goRedisSentinel{t.Context(),
		redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: seeds})}
}

func (c goRedisSentinel) close() { _ = c.Close() }

func (c goRedisSentinel) send(commands [][]string) (answers []answer) {
	pipe := c.Pipeline()
	for _, args := range commands {
		pipe.Do(c.ctx, anys(args)...)
	}
	sent, _ := pipe.Exec(c.ctx) // returns the first of the commands' errors
	for _, cmd := range sent {
		answers = append(answers, goRedisAnswer(cmd.(*redis.Cmd)))
	}
	return answers
}

func (c goRedisCluster) close() { _ = c.Close() }

// send leaves out pipelines under the race detector. If a node answers CLUSTERDOWN to the first command of a pipeline and
// MOVED to a later one, go-redis 9.23 resends the later one to two nodes at once, and two goroutines write its reply.
func (c goRedisCluster) send(commands [][]string) []answer {
	sent := make([]*redis.Cmd, len(commands))
	if len(commands) == 1 || race.Enabled {
		for i, args := range commands {
			sent[i] = c.Do(c.ctx, anys(args)...)
		}
	} else {
		pipe := c.Pipeline()
		for i, args := range commands {
			sent[i] = pipe.Do(c.ctx, anys(args)...)
		}
		_, _ = pipe.Exec(c.ctx) // returns the first of the commands' errors
	}
	answers := make([]answer, len(sent))
	for i, cmd := range sent {
		answers[i] = goRedisAnswer(cmd)
	}
	return answers
}

func goRedisAnswer(cmd *redis.Cmd) answer {
	reply, err := cmd.Result()
	var said redis.Error
	if errors.As(err, &said) {
		err = serverError(said.Error())
	}
	return answer{reply, err}
}

type rueidisCluster struct {
	ctx context.Context
	rueidis.Client
}

func dialRueidisCluster(t *testing.T, seeds []string) clusterClient {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: seeds})
	require.NoError(t, err)
	return rueidisCluster{t.Context(), client}
}

func (c rueidisCluster) close() { c.Close() }

func (c rueidisCluster) build(args []string) rueidis.Completed {
	return c.B().Arbitrary(args[0]).Keys(args[1]).Args(args[2:]...).Build()
}

func (c rueidisCluster) send(commands [][]string) []answer {
	if len(commands) == 1 {
		return []answer{rueidisAnswer(c.Do(c.ctx, c.build(commands[0])))}
	}
	var built rueidis.Commands
	for _, args := range commands {
		built = append(built, c.build(args))
	}
	var answers []answer
	for _, result := range c.DoMulti(c.ctx, built...) {
		answers = append(answers, rueidisAnswer(result))
	}
	return answers
}

func rueidisAnswer(result rueidis.RedisResult) answer {
	reply, err := result.ToAny()
	if said, ok := rueidis.IsRedisErr(err); ok {
		err = serverError(said.Error())
	}
	return answer{reply, err}
}

// redisCLI is "redis-cli -c" as scripts use it: each call is a process. If a node does not answer, the next call asks
// another node.
type redisCLI struct {
	t     *testing.T
	path  string
	seeds []string
	at    atomic.Uint64 // which of seeds to ask
}

func dialRedisCLI(t *testing.T, seeds []string) clusterClient {
	needJSON(t)
	return &redisCLI{t: t, path: tool(t, "redis-cli", "redis-tools"), seeds: seeds}
}

func (c *redisCLI) close() {}

func (c *redisCLI) send(commands [][]string) []answer {
	at := c.at.Load()
	host, port, _ := net.SplitHostPort(c.seeds[at%uint64(len(c.seeds))])
	args := []string{"-c", "--json", "-h", host, "-p", port}
	var script strings.Builder
	if len(commands) == 1 {
		args = append(args, commands[0]...)
	} else {
		for _, command := range commands {
			script.WriteString(cliLine(command))
		}
	}
	cmd := exec.CommandContext(c.t.Context(), c.path, args...)
	cmd.Stdin = strings.NewReader(script.String())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run()
	answers := make([]answer, len(commands))
	lines := slices.DeleteFunc(strings.FieldsFunc(stdout.String(), func(r rune) bool { return r == '\n' }),
		func(line string) bool {
			return strings.HasPrefix(line, "-> Redirected to slot")
		})
	for i := range answers {
		if len(lines) != len(commands) { // redis-cli does not tell which commands were answered
			answers[i].err = errors.New("redis-cli: " + stderr.String() + stdout.String())
			continue
		}
		reply, err := cliReply(c.t, lines[i])
		if err != nil {
			err = serverError(err.Error())
		}
		answers[i] = answer{reply, err}
	}
	if answers[0].err != nil {
		c.at.CompareAndSwap(at, at+1)
	}
	return answers
}
