package client

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/weir-project/weir/client/internal/keys"
)

// The methods of this file change limiters. While weir is not reached they fail with ErrUnavailable. They send an ID
// if the command accepts one, so that a resent command takes effect once.

// Refund gives back n units that were taken from a key and not used. It returns the units left, or -1 if the
// limiter is idle and the refund had no effect.
func (c *Client) Refund(ctx context.Context, key string, n int64) (left int64, err error) {
	defer c.denials.forget(key)
	return c.integer(ctx, "RL.REFUND", key, n)
}

// Reset removes limiters, as if they had never been used. It returns how many were in use.
func (c *Client) Reset(ctx context.Context, keys ...string) (int64, error) {
	args := make([]any, 0, len(keys)+3)
	args = append(args, "RL.RESET")
	for _, key := range keys {
		args = append(args, key)
	}
	defer c.denials.forget(keys...)
	return c.integer(ctx, args...)
}

// Block denies every decision on a key for a time, or with Never until Unblock. The reason may have up to 128
// bytes, or be empty.
func (c *Client) Block(ctx context.Context, key string, d time.Duration, reason string) error {
	return c.block(ctx, key, d, reason)
}

// BlockAtLeast is Block, but a block of the key that ends later stays as it is. Use it for a wait that several clients
// learn, such as the Retry-After of another service. In a cluster it needs form 14 of the log.
func (c *Client) BlockAtLeast(ctx context.Context, key string, d time.Duration, reason string) error {
	return c.block(ctx, key, d, reason, "GT")
}

// BlockEverywhere blocks the key and every key that ends in '|' and this key, such as keys of routes without a
// policy. Block an address by its AddressKey; then requests for the address alone are denied as well. A key
// like "ip:192.0.2.0/24" blocks every address in the network.
func (c *Client) BlockEverywhere(ctx context.Context, key string, d time.Duration, reason string) error {
	return c.block(ctx, key, d, reason, "EVERYWHERE")
}

// AddressKey returns the key of a client by its address, as packages httplimit and grpclimit make it. An IPv6
// address is represented by its /64. The key is empty for an invalid address.
func AddressKey(addr netip.Addr) string { return keys.Addr(addr) }

func (c *Client) block(ctx context.Context, key string, d time.Duration, reason string, how ...any) error {
	until := "FOREVER"
	if d != Never {
		until = duration(d)
	}
	args := append([]any{"RL.BLOCK", key, until}, how...)
	if reason != "" {
		args = append(args, "REASON", reason)
	}
	defer c.denials.forgetBlocked(key) // their retry times no longer hold
	_, err := c.do(ctx, true, append(args, "ID", newID())...)
	return err
}

// Unblock removes a block, whether it is on the key alone or everywhere, and returns whether there was one.
func (c *Client) Unblock(ctx context.Context, key string) (bool, error) {
	defer c.denials.forgetBlocked(key)
	n, err := c.integer(ctx, "RL.UNBLOCK", key)
	return n == 1, err
}

// integer carries out a command that answers with a number. It adds an ID.
func (c *Client) integer(ctx context.Context, args ...any) (int64, error) {
	return c.number(ctx, true, append(args, "ID", newID())...)
}

// number carries out a command that answers with a number.
func (c *Client) number(ctx context.Context, safe bool, args ...any) (int64, error) {
	reply, err := c.do(ctx, safe, args...)
	if err != nil {
		return 0, err
	}
	n, ok := reply.(int64)
	if !ok {
		return 0, fmt.Errorf("%w: to %v: %v", ErrReply, args[0], reply)
	}
	return n, nil
}
