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
	// maxCachedPolicies is as many as weir has at most.
	maxCachedPolicies = engine.MaxPolicies
	// policyRefresh is how old a policy in use may be when an outage begins. A refresh is one
	// RL.POLICY GET for each policy in use.
	policyRefresh = time.Minute
	// policyRetry is the pause after policies could not be fetched.
	policyRetry = time.Second
	// keptUnused is how many refreshes a policy is kept for that no decision has named.
	keptUnused = 60
)

// policyCache keeps the policies that decisions name as weir has them, so that a fallback of
// Local has their limits. One goroutine fetches each when it is used first, and again every
// policyRefresh while it is used. What weir does not answer, or answers an error to, stays as it
// is known: that is what the cache is for.
type policyCache struct {
	fetch   func(context.Context, string) (PolicyInfo, error)
	install func(PolicyInfo) error // gives the terms to the limiter of the process
	remove  func(name string)
	log     *slog.Logger
	counts  *counters

	byName sync.Map // name: *cachedPolicy
	wake   chan struct{}
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex // guards what follows, and additions to byName
	size    int
	started bool
	fetcher sync.WaitGroup
}

// cachedPolicy is one of them. Only used is touched outside of the goroutine.
type cachedPolicy struct {
	given  bool        // by the program's own rules: it is never fetched
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

// use is told of each policy that weir has decided under.
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

// exempt leaves a policy to the program's own rules.
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

// pass fetches the policies that are new, and with all those that are in use. It stops where
// weir is not reached, and says whether it was.
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

// inUse says whether a policy has been used since the last refresh, and drops one that has
// not been for long.
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

// warn tells once that a policy has no limits in an outage, or old ones.
func (p *policyCache) warn(name string, known *cachedPolicy, err error) {
	if known.warned {
		return
	}
	known.warned = true
	p.log.Warn("a policy cannot be fetched for outages: the fallback keeps the limits that it knows, and denies where it knows none",
		"policy", name, "error", err)
}

func (p *policyCache) close() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.fetcher.Wait()
}
