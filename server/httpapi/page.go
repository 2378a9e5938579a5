package httpapi

import (
	"bytes"
	"embed"
	"encoding/json"
	"net/http"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/service"
)

// pageFiles are the files of the page. The page requests nothing from another host.
//
//go:embed page
var pageFiles embed.FS

// pagePolicy allows the page to load only its own files, and forbids other pages to embed it.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// page serves the status page: the status, the limiters of one key, and commands.
type page struct {
	*service.Service
	commands *pageCommander
	past     *history
}

// handle registers the handlers of the page.
func (s *page) handle(mux *http.ServeMux) {
	for path, file := range map[string]string{"/{$}": "index.html", "/page.js": "page.js", "/page.css": "page.css"} {
		mux.HandleFunc("GET "+path, s.forPeople(func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, pageFiles, "page/"+file)
		}))
	}
	feed := newFeed(s.Service)
	mux.HandleFunc("GET /status.json", s.forPeople(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, feed.status())
	}))
	mux.HandleFunc("GET /history.json", s.forPeople(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, s.past.all())
	}))
	mux.HandleFunc("GET /key.json", s.forPeople(s.answerKey))
	mux.HandleFunc("POST /command.json", s.forUsers(s.commands.answer))
}

// forPeople admits users that may inspect all keys.
func (s *page) forPeople(handle http.HandlerFunc) http.HandlerFunc {
	return s.forUsers(func(w http.ResponseWriter, r *http.Request, _ *acl.User) { handle(w, r) })
}

// forUsers is forPeople for handlers that need the user.
func (s *page) forUsers(handle func(http.ResponseWriter, *http.Request, *acl.User)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		u, err := httpUser(s.Service, r)
		if err == nil && u.NoPassword && s.ProtectedMode && !isThisMachine(r) {
			err = errNotThisMachine
		}
		switch {
		case err != nil:
			refuseLogin(w, err)
		case !s.MayInspectAll(u):
			writePlain(w, http.StatusForbidden, "the page shows all keys, and this user has no permission to see them")
		default:
			handle(w, r, u)
		}
	}
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// KeyAnswer is the answer of /key.json.
type KeyAnswer struct {
	Self     string    `json:"self,omitempty"`   // this node; "": a server that runs alone
	Leader   string    `json:"leader,omitempty"` // "": no leader is known
	StaleMs  int64     `json:"stale_ms"`         // upper bound of the age of the answer; 0: linearizable
	Limiters []KeyView `json:"limiters"`
}

// KeyView is one limiter of a key.
type KeyView struct {
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Rule      string `json:"rule"`
	Limit     int64  `json:"limit"`
	Used      int64  `json:"used"`
	Remaining int64  `json:"remaining"`
	IdleInMs  int64  `json:"idle_in_ms"`
	Blocked   bool   `json:"blocked"`
	BlockedMs int64  `json:"blocked_ms"`
	BlockedBy string `json:"blocked_by,omitempty"`
	Reason    string `json:"reason"`
	PenaltyMs int64  `json:"penalty_ms"`
}

// answerKey returns the limiters of a key: its own limiter, and those of policies.
func (s *page) answerKey(w http.ResponseWriter, r *http.Request) {
	key := []byte(r.URL.Query().Get("name"))
	if err := arg.CheckKey(key); err != nil {
		writePlain(w, http.StatusBadRequest, service.ErrorText(err))
		return
	}
	var answer KeyAnswer
	err := s.ReadKey(key, func(v limiter.View, staleMs int64) {
		answer = KeyAnswer{StaleMs: staleMs, Limiters: s.limitersOf(v, key)}
	})
	if err != nil {
		writePlain(w, http.StatusServiceUnavailable, service.ErrorText(err))
		return
	}
	if s.Replica != nil {
		t := s.Replica.Topology()
		answer.Self, answer.Leader = t.Self, t.Leader
	}
	writeJSON(w, answer)
}

func (s *page) limitersOf(v limiter.View, key []byte) []KeyView {
	all := []KeyView{}
	add := func(name []byte) {
		if info, ok := v.Inspect(name); ok || info.Blocked && bytes.Equal(name, key) {
			all = append(all, viewOf(name, &info))
		}
	}
	add(key)
	for _, p := range v.Policies().All() {
		for i := range p.LimitsFor(s.Limiter.Now(), key) {
			add(p.NameOf(i, key))
		}
	}
	return all
}

func viewOf(name []byte, info *engine.Info) KeyView {
	return KeyView{
		Name: string(name), Algorithm: info.Algorithm.String(), Rule: limits.Rule(info.Limit),
		Limit: info.Limit.Max,
		Used:  info.Used, Remaining: info.Remaining, IdleInMs: info.IdleInMs,
		Blocked: info.Blocked, BlockedMs: info.BlockedMs, BlockedBy: info.BlockedBy,
		Reason: info.Reason, PenaltyMs: info.PenaltyMs,
	}
}
