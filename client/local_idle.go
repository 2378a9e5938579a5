package client

import (
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
)

// maxIdleKeys bounds the keys whose last use is recorded, and their memory to some megabytes. The limiter of a key
// beyond the bound is kept until it is idle by itself. That is stricter than Options.LocalIdle asks for.
const maxIdleKeys = 100_000

// idleKeys records when each key was used last, for Options.LocalIdle.
type idleKeys struct {
	ttl time.Duration

	mu   sync.Mutex
	last map[string]time.Time
}

func newIdleKeys(ttl time.Duration) *idleKeys {
	return &idleKeys{ttl: ttl, last: make(map[string]time.Time)}
}

// touch records the use of a key, and reports whether the key was unused for at least ttl before.
func (k *idleKeys) touch(key string, now time.Time) (idle bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	last, there := k.last[key]
	if !there && len(k.last) >= maxIdleKeys {
		if k.dropIdle(now); len(k.last) >= maxIdleKeys {
			return false
		}
	}
	k.last[key] = now
	return there && now.Sub(last) >= k.ttl
}

// dropIdle examines at most maxExamined keys, and drops those that were unused for ttl. Their limiters stay in the
// table until they are idle by themselves.
func (k *idleKeys) dropIdle(now time.Time) {
	n := 0
	for key, last := range k.last {
		if now.Sub(last) >= k.ttl {
			delete(k.last, key)
		}
		if n++; n == maxExamined {
			return
		}
	}
}

// forgetIdle resets the limiters of a request that were not used for Options.LocalIdle.
func (l *localLimiter) forgetIdle(q *Request) {
	if l.idle == nil {
		return
	}
	now := time.Now()
	if q.Rule.policy == "" {
		if l.idle.touch(q.Key, now) {
			l.do(engine.Op{Code: engine.OpReset, Key: []byte(q.Key)})
		}
		return
	}
	l.forgetIdlePair(Pair{q.Rule.policy, q.Key}, now)
	for _, p := range q.others() {
		l.forgetIdlePair(p, now)
	}
}

func (l *localLimiter) forgetIdlePair(p Pair, now time.Time) {
	if !l.idle.touch(p.Policy+"|"+p.Key, now) {
		return
	}
	policy, key := l.table.Policies().Get([]byte(p.Policy)), []byte(p.Key)
	if policy == nil {
		return
	}
	for i := range policy.LimitsFor(l.now(), key) {
		l.do(engine.Op{Code: engine.OpReset, Key: policy.NameOf(i, key)})
	}
}
