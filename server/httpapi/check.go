package httpapi

import (
	"net/http"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/httpfields"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// Who may use the HTTP check (Config.HTTPCheck).
const (
	CheckOff       = "off"       // nobody: there is no such page
	CheckProtected = "protected" // who gives the password; where there is none, this machine
	CheckOpen      = "open"      // whoever reaches the port
)

const (
	// checkPath is where proxies ask; a policy may follow.
	checkPath = "/check"
	// CheckMaxConns bounds connections where proxies ask: each keeps some open for
	// every one of its workers.
	CheckMaxConns = 1024
	// MaxCheckHeaderBytes bounds what proxies hand on of their clients' requests: nginx takes
	// 32 KiB of cookies and tokens, Envoy 60, and who is let in there is not kept out here.
	MaxCheckHeaderBytes = 64 << 10
	// maxCheckHold bounds how long an answer is kept back for a policy that paces: well
	// within httpWriteTimeout and the timeouts of proxies.
	maxCheckHold = 5 * time.Second
	// undecidedRetrySeconds is when to come back after an answer that no decision is
	// behind: about what an election takes.
	undecidedRetrySeconds = "1"
)

// httpCheck answers proxies that ask whether to let a request through. See
// docs/http.md.
type httpCheck struct {
	*service.Service
	open bool // whoever reaches the port may ask
	// running is held while a decision is made, and taken by close: none reaches the
	// limiter behind that.
	running sync.RWMutex
	closed  bool
}

// newHTTPCheck returns nil where the check is off.
func newHTTPCheck(s *service.Service, who string) *httpCheck {
	if who == CheckOff {
		return nil
	}
	return &httpCheck{Service: s, open: who == CheckOpen}
}

func (h *httpCheck) close() {
	h.running.Lock()
	defer h.running.Unlock()
	h.closed = true
}

// ServeHTTP decides. A check that is not understood is never an admission.
func (h *httpCheck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	if forAnotherSite(r) && mayBeBrowsers(r) {
		h.reject(w, http.StatusForbidden, errAnotherSite)
		return
	}
	u, err := h.asker(r)
	if err != nil {
		refuseLogin(w, err)
		return
	}
	q, err := readCheck(r)
	if err != nil {
		h.reject(w, http.StatusBadRequest, err)
		return
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
		q.quota(&d).Set(w.Header(), q.style, time.Now())
		h.hold(r, time.Duration(d.RetryMs)*time.Millisecond)
		w.WriteHeader(http.StatusNoContent)
	default:
		q.deny(w, &d)
	}
}

// errAnotherSite refuses what a page of another site had a browser send.
const errAnotherSite = resp.Error("ERR a browser sent this for a page of another site: only proxies ask here, " +
	"and a proxy that hands on its client's Connection header must add X-Forwarded-For or X-Original-URI")

// asker is who asks; nil: anybody may. Where nobody needs a password the Authorization
// is not weir's: proxies hand on what their clients say to the server behind.
func (h *httpCheck) asker(r *http.Request) (*acl.User, error) {
	users := h.Users.Load()
	switch {
	case h.open:
		return nil, nil
	case users.Open() && (!fromThisMachine(r) || !namesThisMachine(r) && mayBeBrowsers(r)):
		return nil, errNotThisMachine
	case users.Open():
		return users.Get(acl.DefaultUser), nil
	}
	return httpUser(h.Service, r)
}

// reject answers a check that was not carried out.
func (h *httpCheck) reject(w http.ResponseWriter, status int, err error) {
	writePlain(w, status, h.CheckRejected(err))
}

// decide carries a check out.
func (h *httpCheck) decide(r *http.Request, q *checkRequest) (engine.Decision, error) {
	h.running.RLock()
	defer h.running.RUnlock()
	if h.closed {
		return engine.Decision{}, limiter.ErrTryAgain
	}
	var d [1]engine.Decision
	if err := h.DecideChecks(r.RemoteAddr, []engine.Op{q.op}, d[:]); err != nil {
		return engine.Decision{}, err // what is in d may not be used
	}
	if d[0].Status == engine.OK {
		return d[0], nil
	}
	err := service.StatusError(&q.op, &d[0])
	h.CheckFailed(err)
	return d[0], err
}

// undecided answers where no decision was made: the cluster has no leader, memory is
// full. What the proxy does then is its own choice, by error_status.
func (h *httpCheck) undecided(w http.ResponseWriter, q *checkRequest, err error) {
	w.Header().Set(httpfields.RetryAfter, undecidedRetrySeconds)
	h.Log.Debug("an HTTP check was not decided", "error", err)
	writePlain(w, q.errorStatus, service.ErrorText(err))
}

// hold keeps an answer back for a policy that paces.
func (h *httpCheck) hold(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(min(d, maxCheckHold))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	case <-h.Stop:
	}
}
