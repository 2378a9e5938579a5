package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
)

const (
	// maxCachedPolicies is the largest number of policies that weir can have.
	maxCachedPolicies = engine.MaxPolicies
	// policyRefresh bounds the age of a used policy at the beginning of an outage. A refresh is one RL.POLICY GET
	// for each policy in use.
	policyRefresh = time.Minute
	// policyRetry is the pause after a failed fetch.
	policyRetry = time.Second
	// keptUnused is the number of refreshes after which a policy that no decision has named is dropped.
	keptUnused = 60
)

// policyCache keeps weir's policies that decisions name, so that the fallback Local has their limits. One
// goroutine fetches each policy on its first use, and again every policyRefresh while it is used. If weir does
// not answer, or answers with an error, the cache keeps the terms it has.
type policyCache struct {
	fetch   func(context.Context, string) (PolicyInfo, error)
	install func(PolicyInfo) error // adds the terms to the local limiter
	remove  func(name string)
	log     *slog.Logger
	counts  *counters

	byName sync.Map      // name: *cachedPolicy
	wake   chan struct{} // holds a token when policies wait for their first fetch
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex // guards size, started, and additions to byName
	size    int
	started bool
	fetcher sync.WaitGroup
}

// cachedPolicy is one cached policy. Only the goroutine of policyCache accesses its fields, except the field used.
type cachedPolicy struct {
	given  bool        // defined by the program's own rules; never fetched
	used   atomic.Bool // since the last refresh
	unused int         // refreshes without a use
	asked  bool        // weir has answered once
	warned bool
	terms  PolicyInfo
}

func newPolicyCache(c *Client) *policyCache {
	p := &policyCache{
		fetch: c.GetPolicy, install: c.local.install, remove: c.local.remove, log: c.options.Logger, counts: &c.counts,
		wake: make(chan struct{}, 1),
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// use records the use of a policy.
func (p *policyCache) use(name string) {
	if known, ok := p.byName.Load(name); ok {
		if used := &known.(*cachedPolicy).used; !used.Load() {
			used.Store(true)
		}
		return
	}
	added := new(cachedPolicy)
	added.used.Store(true)
	p.add(name, added)
}

// exempt excludes a policy from fetching, because the program's own rules stand in for it.
func (p *policyCache) exempt(name string) { p.add(name, &cachedPolicy{given: true}) }

func (p *policyCache) add(name string, added *cachedPolicy) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size >= maxCachedPolicies || p.ctx.Err() != nil {
		return
	}
	if _, there := p.byName.LoadOrStore(name, added); there {
		return
	}
	p.size++
	if added.given {
		return
	}
	if !p.started {
		p.started = true
		p.fetcher.Go(p.run)
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *policyCache) run() {
	refresh := time.NewTicker(policyRefresh)
	defer refresh.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-refresh.C:
			p.pass(true)
		case <-p.wake:
			if !p.pass(false) {
				p.again()
			}
		}
	}
}

// again wakes the goroutine after a pause, for the policies that have not been fetched yet.
func (p *policyCache) again() {
	timer := time.NewTimer(policyRetry)
	defer timer.Stop()
	select {
	case <-p.ctx.Done():
	case <-timer.C:
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// pass fetches the policies that have not been fetched yet or, if all is true, the policies in use. It stops and
// returns false if weir is not reached.
func (p *policyCache) pass(all bool) (reached bool) {
	reached = true
	p.byName.Range(func(key, value any) bool {
		name, known := key.(string), value.(*cachedPolicy)
		if known.given || all && !p.inUse(name, known) || !all && known.asked {
			return true
		}
		terms, err := p.fetch(p.ctx, name)
		switch {
		case err == nil:
			known.asked = true
			p.learn(name, known, terms)
		case errors.Is(err, ErrRefused):
			known.asked = true
			p.warn(name, known, err)
		default:
			reached = false
		}
		return reached
	})
	return reached
}

// inUse reports whether a policy was used since the last refresh. It drops a policy that was not used for
// keptUnused refreshes.
func (p *policyCache) inUse(name string, known *cachedPolicy) bool {
	if known.used.Swap(false) {
		known.unused = 0
		return true
	}
	if known.unused++; known.unused >= keptUnused {
		p.mu.Lock()
		p.byName.Delete(name)
		p.size--
		p.mu.Unlock()
		if p.remove(name); known.terms.Name != "" {
			p.counts.policies.Add(-1)
		}
	}
	return false
}

func (p *policyCache) learn(name string, known *cachedPolicy, terms PolicyInfo) {
	if known.terms.sameTerms(&terms) {
		return
	}
	if err := p.install(terms); err != nil {
		p.warn(name, known, err)
		return
	}
	if known.terms.Name == "" {
		p.counts.policies.Add(1)
	}
	known.terms, known.warned = terms, false
}

// warn logs once that a policy has no limits in an outage, or old limits.
func (p *policyCache) warn(name string, known *cachedPolicy, err error) {
	if known.warned {
		return
	}
	known.warned = true
	p.log.Warn("fetching a policy for outages failed: the fallback keeps the limits that it has, and denies if it "+
		"has none",
		"policy", name, "error", err)
}

func (p *policyCache) close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.fetcher.Wait()
}
