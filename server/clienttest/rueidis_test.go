package clienttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/redis/rueidis"
)

type rueidisClient struct {
	ctx context.Context
	rueidis.Client
}

func dialRueidis(t *testing.T, addr, password string) (goClient, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, Password: password})
	if err != nil {
		return nil, err
	}
	return rueidisClient{t.Context(), client}, nil
}

func (c rueidisClient) close() { c.Close() }

func (c rueidisClient) do(args []string) (any, error) {
	return c.Do(c.ctx, c.B().Arbitrary(args...).Build()).ToAny()
}

func (c rueidisClient) build(commands [][]string) rueidis.Commands {
	built := make(rueidis.Commands, len(commands))
	for i, args := range commands {
		built[i] = c.B().Arbitrary(args...).Build()
	}
	return built
}

func (c rueidisClient) pipeline(commands [][]string) ([]any, error) {
	return rueidisValues(c.DoMulti(c.ctx, c.build(commands)...))
}

func (c rueidisClient) transaction(commands [][]string) ([]any, error) {
	dedicated, release := c.Dedicate()
	defer release()
	built := append(rueidis.Commands{c.B().Multi().Build()}, c.build(commands)...)
	replies, err := rueidisValues(dedicated.DoMulti(c.ctx, append(built, c.B().Exec().Build())...))
	if err != nil {
		return nil, err
	}
	list, ok := replies[len(replies)-1].([]any)
	if !ok {
		return nil, fmt.Errorf("EXEC answered %v", replies[len(replies)-1])
	}
	return list, nil
}

func rueidisValues(results []rueidis.RedisResult) ([]any, error) {
	replies := make([]any, len(results))
	for i, result := range results {
		var err error
		if replies[i], err = result.ToAny(); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// TestRueidis also covers the commands that rueidis sends on its own: it enables client tracking, and asks whether the
// server is a cluster.
func TestRueidis(t *testing.T) { testGoClient(t, dialRueidis, nil) }
