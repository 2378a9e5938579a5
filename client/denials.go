package client

import (
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
)

// denials remembers which keys weir has denied, and until when. It keeps one denial per key: a denial under
// another rule replaces it.
type denials struct {
	most int
	mu   sync.Mutex
	keys map[string]denial
}

type denial struct {
	rule    string
	units   int64 // the units asked for: more units need a longer wait, fewer may fit
	high    bool
	maxWait time.Duration
	from    netip.Addr // Request.From: a block of this address denies only the requests from it
	at      time.Time
	until   time.Time // the retry time; a monotonic reading, like at
	forget  time.Time // when the client asks weir again: until, or after maxDenialAge
	d       Decision
}

func newDenials(most int) *denials {
	return &denials{most: most, keys: make(map[string]denial)}
}

// memorable reports whether a denial of q stays valid until its retry time. A denial of a slot or of a hold does
// not, because another client may free units at any time. A check of several keys is not remembered. Neither is a
// denial under a rule with extended penalties, because weir has to count each request.
func memorable(q *Request) bool {
	return !q.Peek && q.holder == "" && q.hold == 0 && len(q.Also) == 0 && len(q.Else) == 0 &&
		!q.Rule.strikes(engine.Extend)
}

// units returns the least number of units that q accepts.
func (q *Request) units() int64 {
	if q.Partial {
		return 1
	}
	return q.cost()
}

func (m *denials) remember(q *Request, d *Decision, now time.Time) {
	if d.Allowed || d.RetryAfter <= 0 || d.RetryAfter == Never || m.most <= 0 || !memorable(q) {
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
		m.dropExpired(now)
	}
	m.keys[q.Key] = kept
}

// maxExamined bounds how many entries of their maps denials.dropExpired and idleKeys.dropIdle examine.
const maxExamined = 8

// dropExpired examines at most maxExamined denials and drops the expired ones. If it found none, it drops a valid
// one, so that there is space. The next request for that key goes to weir.
func (m *denials) dropExpired(now time.Time) {
	n, victim := 0, ""
	for key, kept := range m.keys {
		if !now.Before(kept.forget) {
			delete(m.keys, key)
		}
		if victim, n = key, n+1; n == maxExamined {
			break
		}
	}
	if len(m.keys) >= m.most {
		delete(m.keys, victim)
	}
}

// recall returns the remembered denial of q, if any. It reads the clock only if the key has a denial.
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
	case kept.rule != q.Rule.name || kept.high != q.High || kept.maxWait != q.MaxWait || kept.from != q.From ||
		q.units() != kept.units:
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

// forgetBlocked drops the denials that a block or unblock of key may change. These are the denials of key, of the
// keys that end in "|" and key, and of all requests with an address (Request.From).
func (m *denials) forgetBlocked(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	addr := strings.TrimPrefix(key, "ip:")
	for other, kept := range m.keys {
		if kept.from.IsValid() || other == key || other == addr || strings.HasSuffix(other, "|"+key) ||
			strings.HasSuffix(other, "|"+addr) {
			delete(m.keys, other)
		}
	}
}

// forget drops the denials of keys whose limiters this client has changed.
func (m *denials) forget(keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.keys, key)
	}
}
