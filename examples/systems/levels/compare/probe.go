package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// probe sends requests to one algorithm.
type probe struct {
	ctx context.Context
	*weir
	algorithm
	window time.Duration
	keys   int // number of keys whose memory was measured
}

func (p *probe) request(key string, limit int) []any {
	return append([]any{p.command, key}, p.words(limit, p.window)...)
}

// ask sends n requests at once. For each admitted request it returns how long the caller must delay the request.
func (p *probe) ask(rdb *redis.Client, key string, limit, n int) (waits []time.Duration, err error) {
	pipe := rdb.Pipeline()
	for range n {
		pipe.Do(p.ctx, p.request(key, limit)...)
	}
	replies, err := pipe.Exec(p.ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range replies {
		numbers, err := r.(*redis.Cmd).Int64Slice()
		if err != nil {
			return nil, err
		}
		if numbers[0] > 0 {
			waits = append(waits, time.Duration(numbers[2])*time.Millisecond)
		}
	}
	return waits, nil
}

// toWindow moves the clock forward until it is part after the start of an aligned window.
func (p *probe) toWindow(part time.Duration) error {
	now, err := p.rdb.Time(p.ctx).Result()
	if err != nil {
		return err
	}
	into := time.Duration(now.UnixNano() % int64(p.window))
	p.pass((part + 2*p.window - into) % p.window)
	return nil
}

// overload sends as many requests as the limit admits in a window, twenty times a window. It begins shortly before
// the end of a window. For each request that is let through, it returns the time since the first request.
func (p *probe) overload(limit int) (through []time.Duration, err error) {
	const ticks = 60
	if err := p.toWindow(p.window * 19 / 20); err != nil {
		return nil, err
	}
	for tick := range ticks {
		waits, err := p.ask(p.rdb, p.name, limit, limit)
		if err != nil {
			return nil, err
		}
		for _, wait := range waits {
			through = append(through, time.Duration(tick)*p.window/20+wait)
		}
		p.pass(p.window / 20)
	}
	slices.Sort(through)
	return through, nil
}

// again uses up the limit shortly after the start of a window, and asks again one window later. An exact limiter has
// forgotten the first requests by then. again returns how many requests are admitted then.
func (p *probe) again(limit int) (int, error) {
	if err := p.toWindow(p.window / 20); err != nil {
		return 0, err
	}
	if _, err := p.ask(p.rdb, p.name+" again", limit, limit); err != nil {
		return 0, err
	}
	p.pass(p.window)
	waits, err := p.ask(p.rdb, p.name+" again", limit, limit)
	return len(waits), err
}

// bytes returns the memory of a key of 15 bytes whose limit was used up evenly over half a window.
func (p *probe) bytes(limit int) (int64, error) {
	p.keys++
	key := fmt.Sprintf("user:%010d", p.keys)
	if err := p.toWindow(0); err != nil {
		return 0, err
	}
	for range limit {
		if err := p.rdb.Do(p.ctx, p.request(key, limit)...).Err(); err != nil {
			return 0, err
		}
		p.pass(p.window / time.Duration(2*limit))
	}
	return p.rdb.MemoryUsage(p.ctx, key).Result()
}

// time returns the time of a decision on one connection with a hundred requests in flight, over a thousand keys.
func (p *probe) time(rdb *redis.Client, limit, decisions int) (time.Duration, error) {
	const keys, together = 1000, 100
	began, sent := time.Now(), 0
	for ; sent < decisions; sent += together {
		pipe := rdb.Pipeline()
		for i := range together {
			pipe.Do(p.ctx, p.request(fmt.Sprint(p.name, (sent+i)%keys), limit)...)
		}
		if _, err := pipe.Exec(p.ctx); err != nil {
			return 0, err
		}
	}
	return time.Since(began) / time.Duration(sent), nil
}
