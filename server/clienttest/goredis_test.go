package clienttest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

type goRedis struct {
	ctx context.Context
	*redis.Client
}

func dialGoRedis(t *testing.T, addr, password string) (goClient, error) {
	return goRedis{t.Context(), redis.NewClient(&redis.Options{Addr: addr, Password: password})}, nil
}

func (c goRedis) do(args []string) (any, error) { return c.Do(c.ctx, anys(args)...).Result() }
func (c goRedis) close()                        { _ = c.Close() }

func (c goRedis) pipeline(commands [][]string) ([]any, error) { return c.exec(c.Pipeline(), commands) }

func (c goRedis) transaction(commands [][]string) ([]any, error) {
	return c.exec(c.TxPipeline(), commands)
}

func (c goRedis) exec(pipe redis.Pipeliner, commands [][]string) ([]any, error) {
	for _, args := range commands {
		pipe.Do(c.ctx, anys(args)...)
	}
	done, err := pipe.Exec(c.ctx)
	replies := make([]any, len(done))
	for i, cmd := range done {
		replies[i] = cmd.(*redis.Cmd).Val()
	}
	return replies, err
}

// logHook collects the lines that go-redis logs.
type logHook struct {
	mu    sync.Mutex
	lines []string
}

func (h *logHook) Printf(_ context.Context, format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, fmt.Sprintf(format, args...))
}

// take returns the lines since the last call.
func (h *logHook) take() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	lines := h.lines
	h.lines = nil
	return lines
}

func TestGoRedis(t *testing.T) {
	hook := new(logHook)
	redis.SetLogger(hook)
	testGoClient(t, dialGoRedis, hook.take)
}
