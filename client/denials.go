package client

import (
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
)

// denials remembers which keys weir has denied, and until when. One key has one place:
// a denial under another rule takes it.
type denials struct {
	most int
	mu   sync.Mutex
	keys map[string]denial
}

type denial struct {
	rule    string
	units   int64 // that were asked for: more need a longer wait, less may fit
	high    bool
	maxWait time.Duration
	from    netip.Addr // a block of it denies nobody else
	at      time.Time
	until   time.Time // the retry time; a monotonic reading, like at
	forget  time.Time
	d       Decision
}

func newDenials(most int) *denials {
	return &denials{most: most, keys: make(map[string]denial)}
}

// memorable says whether a denial of q holds for a while: no slot and no hold, for which
// others may make room at any time, no check of several keys, and nothing that makes its
// penalty longer.
func memorable(q *Request) bool {
	return !q.Peek && q.holder == "" && q.hold == 0 && len(q.Also) == 0 && !q.Rule.strikes(engine.Extend)
}

// units is the least that would have had to be there to admit anything.
func (q *Request) units() int64 {
	if q.Partial {
		return 1
	}
	return q.cost()
}

func (m *denials) remember(q *Request, d *Decision, now time.Time) {
	if d.Allowed || d.RetryAfter <= 0 || m.most <= 0 || !memorable(q) {
		return
	}
	until := now.Add(d.RetryAfter)
	kept := denial{
		rule: q.Rule.name, units: q.units(), high: q.High, maxWait: q.MaxWait, from: q.From,
		at: now, until: until, forget: now.Add(min(d.RetryAfter, maxDenialAge)), d: *d,
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.keys[q.Key]; !there && len(m.keys) >= m.most {
		m.makeRoom(now)
	}
	m.keys[q.Key] = kept
}

// looked bounds how many denials are looked at for one that is over.
const looked = 8

// makeRoom drops what is over of a few denials, or else one of them: it is asked for
// once more then.
func (m *denials) makeRoom(now time.Time) {
	n, victim := 0, ""
	for key, kept := range m.keys {
		if !now.Before(kept.forget) {
			delete(m.keys, key)
		}
		if victim, n = key, n+1; n == looked {
			break
		}
	}
	if len(m.keys) >= m.most {
		delete(m.keys, victim)
	}
}

// recall is the denial of q that is known already. The clock is read only where there
// is one of its key.
func (m *denials) recall(q *Request, clock func() time.Time) (Decision, bool) {
	if m.most <= 0 || !memorable(q) {
		return Decision{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, there := m.keys[q.Key]
	if !there {
		return Decision{}, false
	}
	now := clock()
	switch {
	case kept.rule != q.Rule.name || kept.high != q.High || kept.maxWait != q.MaxWait || kept.from != q.From || q.units() != kept.units:
		return Decision{}, false
	case !now.Before(kept.forget):
		delete(m.keys, q.Key)
		return Decision{}, false
	}
	d := kept.d
	d.Source = FromMemory
	d.RetryAfter = kept.until.Sub(now)
	if d.ResetAfter != Never {
		d.ResetAfter = max(d.ResetAfter-now.Sub(kept.at), d.RetryAfter)
	}
	return d, true
}

// forgetBehind drops what is known of the keys that a block of this one may hold for, and of
// all requests that came from an address.
func (m *denials) forgetBehind(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	addr := strings.TrimPrefix(key, "ip:")
	for other, kept := range m.keys {
		if kept.from.IsValid() || other == key || other == addr || strings.HasSuffix(other, "|"+key) || strings.HasSuffix(other, "|"+addr) {
			delete(m.keys, other)
		}
	}
}

// forget drops what is known of keys that this client has changed.
func (m *denials) forget(keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.keys, key)
	}
}
