package server

import (
	"crypto/subtle"
	"embed"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/weir-project/weir/engine"
)

// badLoginPause holds a wrong password up, so that guessing over HTTPMaxConns
// connections is slow. No one who mistypes minds.
const badLoginPause = time.Second

// pageFiles are the page for people: it asks no other host for anything.
//
//go:embed page
var pageFiles embed.FS

// pagePolicy lets the page use its own files and nothing else, and be part of no other.
const pagePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// handlePage serves the page, what it shows, and what is known of one key.
func (s *Server) handlePage(mux *http.ServeMux) {
	for path, file := range map[string]string{"/{$}": "index.html", "/page.js": "page.js", "/page.css": "page.css"} {
		mux.HandleFunc("GET "+path, s.forPeople(func(w http.ResponseWriter, r *http.Request) {
			http.ServeFileFS(w, r, pageFiles, "page/"+file)
		}))
	}
	feed := s.newFeed()
	mux.HandleFunc("GET /status.json", s.forPeople(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, feed.status()) }))
	mux.HandleFunc("GET /key.json", s.forPeople(s.answerKey))
}

// forPeople lets those in who may see keys: with a password those who know it; without
// one everybody, or in protected mode this machine alone, as on the other port.
func (s *Server) forPeople(handle http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		switch {
		case s.cfg.Password != "" && !s.knowsPassword(r):
			h.Set("WWW-Authenticate", `Basic realm="weir", charset="UTF-8"`)
			writePlain(w, http.StatusUnauthorized, "the password of this server; the user is default")
		case s.cfg.Password == "" && s.cfg.ProtectedMode && !isThisMachine(r):
			writePlain(w, http.StatusForbidden, "weir runs in protected mode: without a password it shows keys to its own machine alone")
		default:
			handle(w, r)
		}
	}
}

func (s *Server) knowsPassword(r *http.Request) bool {
	user, password, given := r.BasicAuth()
	if !given {
		return false
	}
	right := subtle.ConstantTimeCompare(digest(password), digest(s.cfg.Password)) == 1
	if right && (user == "default" || user == "") {
		return true
	}
	s.state.stats.authFailures.Add(1)
	select {
	case <-time.After(badLoginPause):
	case <-r.Context().Done():
	}
	return false
}

// isThisMachine says whether a request comes from this machine, and was meant for it:
// a page of some other host that had its name point here must not read.
func isThisMachine(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	_, err = netip.ParseAddr(host)
	from, errFrom := netip.ParseAddrPort(r.RemoteAddr)
	return (err == nil || host == "localhost") && errFrom == nil && from.Addr().Unmap().IsLoopback()
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// keyView is one limiter of a key.
type keyView struct {
	Name      string `json:"name"`
	Algorithm string `json:"algorithm"`
	Rule      string `json:"rule"`
	Limit     int64  `json:"limit"`
	Used      int64  `json:"used"`
	Remaining int64  `json:"remaining"`
	IdleInMs  int64  `json:"idle_in_ms"`
	Blocked   bool   `json:"blocked"`
	BlockedMs int64  `json:"blocked_ms"`
	Reason    string `json:"reason"`
	PenaltyMs int64  `json:"penalty_ms"`
}

// answerKey tells what counts against a key: its own limiter, and those that policies
// keep for it. It is read from this node's own state.
func (s *Server) answerKey(w http.ResponseWriter, r *http.Request) {
	key := []byte(r.URL.Query().Get("name"))
	if err := checkKey(key); err != nil {
		writePlain(w, http.StatusBadRequest, errorText(err))
		return
	}
	found := []keyView{}
	add := func(name []byte) {
		if info, ok := s.lim.Inspect(name); ok {
			found = append(found, viewOf(name, &info))
		}
	}
	add(key)
	for _, p := range s.lim.Policies().All() {
		for i := range p.LimitsFor(s.lim.Now(), key) {
			add(p.NameOf(i, key))
		}
	}
	writeJSON(w, found)
}

func viewOf(name []byte, info *engine.Info) keyView {
	return keyView{
		Name: string(name), Algorithm: info.Algorithm.String(), Rule: ruleText(info.Limit), Limit: info.Limit.Max,
		Used: info.Used, Remaining: info.Remaining, IdleInMs: info.IdleInMs,
		Blocked: info.Blocked, BlockedMs: info.BlockedMs, Reason: info.Reason, PenaltyMs: info.PenaltyMs,
	}
}
