package server

import (
	"net/http"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/httpfields"
)

// Who may use the HTTP check (Config.HTTPCheck).
const (
	HTTPCheckOff       = "off"       // nobody: there is no such page
	HTTPCheckProtected = "protected" // who gives the password; where there is none, this machine
	HTTPCheckOpen      = "open"      // whoever reaches the port
)

const (
	// checkPath is where proxies ask; a policy may follow.
	checkPath = "/check"
	// HTTPCheckMaxConns bounds connections where proxies ask: each keeps some open for
	// every one of its workers.
	HTTPCheckMaxConns = 1024
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
	srv *Server
	// running is held while a decision is made, and taken by close: none reaches the
	// limiter behind that.
	running sync.RWMutex
	closed  bool
}

// newHTTPCheck returns nil where the check is off.
func newHTTPCheck(s *Server) *httpCheck {
	if s.cfg.HTTPCheck == HTTPCheckOff {
		return nil
	}
	return &httpCheck{srv: s}
}

func (h *httpCheck) close() {
	h.running.Lock()
	defer h.running.Unlock()
	h.closed = true
}

// ServeHTTP decides. A check that is not understood is never an admission.
func (h *httpCheck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	u, err := h.asker(r)
	if err != nil {
		refuseLogin(w, err)
		return
	}
	q, err := readCheck(r)
	if err != nil {
		writePlain(w, http.StatusBadRequest, err.Error())
		return
	}
	if u != nil && !h.srv.mayCheck(u, &q.op) {
		h.srv.state.stats.noPermission.Add(1)
		writePlain(w, http.StatusForbidden, "this user may not ask about this key")
		return
	}
	d, err := h.decide(q)
	switch {
	case err != nil:
		h.undecided(w, q, err)
	case d.Status == engine.UnknownPolicy:
		writePlain(w, http.StatusNotFound, "there is no policy "+quote(q.op.Text))
	case d.Status == engine.OutOfMemory:
		h.undecided(w, q, errOutOfMemory)
	case d.Allowed > 0:
		q.quota(d).Set(w.Header(), q.style, time.Now())
		h.hold(r, time.Duration(d.RetryMs)*time.Millisecond)
		w.WriteHeader(http.StatusNoContent)
	default:
		q.deny(w, d)
	}
}

// asker is who asks; nil: anybody may.
func (h *httpCheck) asker(r *http.Request) (*user, error) {
	switch {
	case h.srv.cfg.HTTPCheck == HTTPCheckOpen:
		return nil, nil
	case h.srv.users.Load().open() && !fromThisMachine(r):
		return nil, errNotThisMachine
	}
	return h.srv.httpUser(r)
}

// decide asks the limiter, as RL.CHECK does.
func (h *httpCheck) decide(q *checkRequest) (*engine.Decision, error) {
	h.running.RLock()
	defer h.running.RUnlock()
	if h.closed || h.srv.draining.Load() {
		return nil, ErrTryAgain
	}
	ops, out := [1]engine.Op{q.op}, [1]engine.Decision{}
	if err := h.srv.lim.Decide(ops[:], out[:]); err != nil {
		return nil, err
	}
	return &out[0], nil
}

// undecided answers where no decision was made: the cluster has no leader, memory is
// full. What the proxy does then is its own choice, by error_status.
func (h *httpCheck) undecided(w http.ResponseWriter, q *checkRequest, err error) {
	w.Header().Set(httpfields.RetryAfter, undecidedRetrySeconds)
	h.srv.log.Debug("an HTTP check was not decided", "error", err)
	writePlain(w, q.errorStatus, errorText(err))
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
	case <-h.srv.stop:
	}
}
