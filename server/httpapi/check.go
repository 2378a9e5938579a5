package httpapi

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/httpfields"
	"github.com/weir-project/weir/internal/millis"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// Values of Config.HTTPCheck: the clients that may use the HTTP check.
const (
	CheckOff       = "off"       // no client: the path does not exist
	CheckProtected = "protected" // clients with a password; without passwords, only this machine
	CheckOpen      = "open"      // every client that reaches the port
)

const (
	// checkPath is the path of the HTTP check. The name of a policy may follow.
	checkPath = "/check"
	// CheckMaxConns bounds the connections while the check is on, because a proxy keeps some open for each of its
	// workers.
	CheckMaxConns = 1024
	// MaxCheckHeaderBytes bounds the headers that proxies forward. nginx accepts 32 KiB of cookies and tokens, and
	// Envoy 60 KiB. A request that the proxy accepts must not fail here.
	MaxCheckHeaderBytes = 64 << 10
	// maxCheckDelay bounds the delay of an answer under a pacing policy. It is well within httpWriteTimeout and the
	// timeouts of proxies.
	maxCheckDelay = 5 * time.Second
	// undecidedRetrySeconds is the Retry-After of an answer without a decision: about the duration of an election.
	undecidedRetrySeconds = "1"
)

// httpCheck answers proxies that ask whether to admit a request. See docs/http.md.
type httpCheck struct {
	*service.Service
	*gate
	open   bool         // every client may ask
	warned atomic.Int64 // when warnPeer logged, in Unix seconds
}

// newHTTPCheck returns nil if the check is off.
func newHTTPCheck(s *service.Service, g *gate, who string) *httpCheck {
	if who == CheckOff {
		return nil
	}
	return &httpCheck{Service: s, gate: g, open: who == CheckOpen}
}

// ServeHTTP answers one check. A malformed check is never admitted.
func (h *httpCheck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	u, ok := h.asker(w, r)
	if !ok {
		return
	}
	q, err := readCheck(r)
	if err != nil {
		h.reject(w, http.StatusBadRequest, err)
		return
	}
	if q.fromPeer {
		h.warnPeer(r)
	}
	if u != nil {
		if err := h.MayCheck(u, &q.op); err != nil {
			h.reject(w, http.StatusForbidden, err)
			return
		}
	}
	h.ShowCheck(r.RemoteAddr, string(q.op.Text), &q.op)
	d, err := h.decide(r, q)
	switch {
	case d.Status == engine.UnknownPolicy:
		writePlain(w, http.StatusNotFound, service.ErrorText(err))
	case err != nil:
		h.undecided(w, q, err)
	case d.Allowed > 0:
		h.QuotaOf(string(q.op.Text), &q.op, &d).Set(w.Header(), q.style, time.Now())
		h.delay(r, millis.Duration(d.RetryMs))
		w.WriteHeader(http.StatusNoContent)
	default:
		q.deny(w, h.QuotaOf(string(q.op.Text), &q.op, &d))
	}
}

// warnEverySeconds bounds the lines of warnPeer.
const warnEverySeconds = 60

// warnPeer logs that a proxy sends no address of its client.
func (h *httpCheck) warnPeer(r *http.Request) {
	now, last := time.Now().Unix(), h.warned.Load()
	if now-last >= warnEverySeconds && h.warned.CompareAndSwap(last, now) {
		h.Log.Warn("the header of from_header has no address: the address of the connection counts instead; let the "+
			"proxy set this header", "peer", r.RemoteAddr)
	}
}

// errAnotherSite rejects a request that a browser sent for a page of another site.
const errAnotherSite = resp.Error("ERR a browser sent this request for a page of another site, but only proxies may " +
	"ask here; a proxy that passes on its client's Connection header must add X-Forwarded-For or X-Original-URI")

// asker returns the user who sends a check, or nil if every client may ask. It refuses other senders. If no user needs
// a password, the Authorization header does not concern weir, because proxies forward their clients' headers.
func (h *httpCheck) asker(w http.ResponseWriter, r *http.Request) (u *acl.User, ok bool) {
	if forAnotherSite(r) && mayBeBrowsers(r) {
		h.reject(w, http.StatusForbidden, errAnotherSite)
		return nil, false
	}
	var err error
	switch users := h.Users.Load(); {
	case h.open:
	case !users.Open():
		u, err = httpUser(h.Service, r)
	case fromThisMachine(r) && (namesThisMachine(r) || !mayBeBrowsers(r)):
		u = users.Get(acl.DefaultUser)
	default:
		err = errNotThisMachine
	}
	if err != nil {
		refuseLogin(w, err)
	}
	return u, err == nil
}

// reject answers a check that was not executed.
func (h *httpCheck) reject(w http.ResponseWriter, status int, err error) {
	writePlain(w, status, h.CheckRejected(err))
}

// decide executes a check.
func (h *httpCheck) decide(r *http.Request, q *checkRequest) (engine.Decision, error) {
	h.running.RLock()
	defer h.running.RUnlock()
	if h.closed {
		return engine.Decision{}, limiter.ErrTryAgain
	}
	var d [1]engine.Decision
	if err := h.DecideChecks(r.RemoteAddr, []engine.Op{q.op}, d[:]); err != nil {
		return engine.Decision{}, err // d is not valid after an error
	}
	if d[0].Status == engine.OK {
		return d[0], nil
	}
	err := service.StatusError(&q.op, &d[0])
	h.CheckFailed(err)
	return d[0], err
}

// undecided answers a check without a decision, for example because the cluster has no leader or memory is full. The
// proxy selects the status with error_status.
func (h *httpCheck) undecided(w http.ResponseWriter, q *checkRequest, err error) {
	w.Header().Set(httpfields.RetryAfter, undecidedRetrySeconds)
	h.Log.Debug("an HTTP check got no decision", "error", err)
	writePlain(w, q.errorStatus, service.ErrorText(err))
}

// delay holds back the answer to an admitted check by d, which a pacing policy asks for, but at most by maxCheckDelay.
func (h *httpCheck) delay(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(min(d, maxCheckDelay))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-h.Stop:
	}
}
