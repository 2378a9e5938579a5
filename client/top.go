package client

import (
	"context"
	"fmt"
)

// Heavy is a key with many recent units. Units of the last minute count in full, those of the minute before by
// half, and so on.
type Heavy struct {
	Key   string
	Units int64
	Error int64 // how many of these may belong to other keys
}

// TopAdmitted lists up to n keys (1 to 1000) with the most units admitted, the heaviest first.
func (c *Client) TopAdmitted(ctx context.Context, n int) ([]Heavy, error) {
	return c.top(ctx, "ADMITTED", n)
}

// TopDenied lists the keys with the most units denied. In a cluster only the leader knows them: use a cluster
// client, or read the leader's address from ErrRefused.
func (c *Client) TopDenied(ctx context.Context, n int) ([]Heavy, error) {
	return c.top(ctx, "DENIED", n)
}

func (c *Client) top(ctx context.Context, what string, n int) ([]Heavy, error) {
	list, err := c.list(ctx, "RL.TOP", what, n)
	heavy := make([]Heavy, len(list))
	for i := range list {
		three, _ := list[i].([]any)
		if len(three) != 3 {
			return nil, fmt.Errorf("%w: to RL.TOP: %v", ErrReply, list[i])
		}
		heavy[i].Key, _ = three[0].(string)
		heavy[i].Units, _ = three[1].(int64)
		heavy[i].Error, _ = three[2].(int64)
	}
	return heavy, err
}
