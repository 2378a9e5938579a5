package client

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-project/weir/internal/millis"
)

// Info describes one limiter. The zero Info describes an idle key.
type Info struct {
	Algorithm  string
	Rule       string // the limit used last, in the syntax of commands
	Limit      int64
	Used       int64 // units, rounded up
	Remaining  int64
	IdleIn     time.Duration // or Never
	Blocked    bool
	BlockedFor time.Duration // the remaining time, or Never
	Reason     string        // of the block
	Penalty    time.Duration // the remaining time of a strike penalty
	Holders    int64
	Bytes      int64
	Stale      time.Duration // the largest age of the data: 0 unless the connection sent READONLY
}

// Inspect describes the limiter of a key.
func (c *Client) Inspect(ctx context.Context, key string) (Info, error) {
	m, err := c.fields(ctx, "RL.INSPECT", key)
	return Info{
		Algorithm: m.text("algorithm"), Rule: m.text("rule"), Limit: m.int("limit"), Used: m.int("used"),
		Remaining: m.int("remaining"),
		IdleIn:    m.span("idle_in_ms"), Blocked: m.flag("blocked"), BlockedFor: m.span("blocked_ms"),
		Reason:  m.text("reason"),
		Penalty: m.span("penalty_ms"), Holders: m.int("holders"), Bytes: m.int("bytes"), Stale: m.span("stale_ms"),
	}, err
}

// Explanation is the decision that a request would get, and the reason.
type Explanation struct {
	Decision
	Algorithm string
	Rule      string // the limit that binds, in the syntax of commands
	Why       string // in words
	// Never says why no wait helps, if RetryAfter is Never: "cost" (the limit never has as many units), "used" (used
	// up, and units never return by themselves) or "block". An older weir does not say it.
	Never string
}

// Explain returns what Decide would answer now, without taking anything.
func (c *Client) Explain(ctx context.Context, q Request) (Explanation, error) {
	if err := q.check(); err != nil {
		return Explanation{}, err
	}
	m, err := c.fields(ctx, append([]any{"RL.EXPLAIN"}, q.args()...)...)
	if err != nil {
		return Explanation{}, err
	}
	five := [5]int64{m.int("allowed"), m.int("remaining"), m.int("retry_after_ms"),
		m.int("reset_after_ms"), m.int("limit")}
	e := Explanation{Decision: decisionFrom(&q, five), Algorithm: m.text("algorithm"),
		Rule: m.text("rule"), Why: m.text("why"), Never: m.text("never")}
	e.Source, e.Policy = FromServer, m.text("policy")
	return e, nil
}

// fields is a reply of names and values: a map in RESP3, a flat array in RESP2.
type fields map[any]any

func (f fields) int(name string) int64 {
	n, _ := f[name].(int64)
	return n
}

func (f fields) text(name string) string {
	s, _ := f[name].(string)
	return s
}

func (f fields) span(name string) time.Duration { return millis.Wait(f.int(name)) }

func (f fields) flag(name string) bool { return f.int(name) == 1 }

func (f fields) list(name string) []any {
	l, _ := f[name].([]any)
	return l
}

func (c *Client) fields(ctx context.Context, args ...any) (fields, error) {
	reply, err := c.do(ctx, false, args...)
	if err != nil {
		return nil, err
	}
	return fieldsOf(reply, args[0])
}

// fieldsOf converts a reply to a command, or a part of it.
func fieldsOf(reply, command any) (fields, error) {
	switch reply := reply.(type) {
	case map[any]any:
		return reply, nil
	case []any:
		m := make(fields, len(reply)/2)
		for i := 0; i+1 < len(reply); i += 2 {
			m[reply[i]] = reply[i+1]
		}
		return m, nil
	}
	return nil, fmt.Errorf("%w: to %v: %v", ErrReply, command, reply)
}

// list carries out a command that answers a list.
func (c *Client) list(ctx context.Context, args ...any) ([]any, error) {
	reply, err := c.do(ctx, false, args...)
	if err != nil {
		return nil, err
	}
	list, ok := reply.([]any)
	if !ok {
		return nil, fmt.Errorf("%w: to %v: %v", ErrReply, args[0], reply)
	}
	return list, nil
}

// texts converts a list of strings.
func texts(list []any) []string {
	words := make([]string, len(list))
	for i := range list {
		words[i], _ = list[i].(string)
	}
	return words
}

// Heavy is a key with many recent units. Units of the current minute count in full, those of the minute before by
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
