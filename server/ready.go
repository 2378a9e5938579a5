package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// maxReadyStale is how old the state of a node may be that calls itself ready:
// several elections long, so that a failover sends no node away, and short
// enough that nobody is sent to one that is still catching up.
const maxReadyStale = 10 * time.Second

// readiness is one line of /readyz.
type readiness struct {
	what string
	ok   bool
	said string
}

func (r readiness) String() string {
	if r.ok {
		return "[+]" + r.what + " " + r.said
	}
	return "[-]" + r.what + " " + r.said
}

// answerReady tells whether clients should be sent here.
func (s *Server) answerReady(w http.ResponseWriter, _ *http.Request) {
	switch {
	case s.replica != nil:
		status, text := s.replicaReady()
		writePlain(w, status, text)
	case s.draining.Load():
		writePlain(w, http.StatusServiceUnavailable, "draining")
	default:
		writePlain(w, http.StatusOK, "ok")
	}
}

// Ready reports what /readyz answers.
func (s *Server) Ready() bool {
	if s.replica == nil {
		return !s.draining.Load()
	}
	status, _ := s.replicaReady()
	return status == http.StatusOK
}

// replicaReady asks three things: does this node serve as a member, is there a
// leader to decide, and is the state here up to date.
func (s *Server) replicaReady() (status int, text string) {
	status = http.StatusOK
	var lines []string
	for _, r := range s.readiness() {
		lines = append(lines, r.String())
		if !r.ok {
			status = http.StatusServiceUnavailable
		}
	}
	return status, strings.Join(lines, "\n")
}

func (s *Server) readiness() []readiness {
	t, stale := s.replica.Topology(), s.replica.StaleFor()
	node := readiness{"node", true, "ok"}
	switch {
	case s.draining.Load():
		node = readiness{"node", false, "draining"}
	case t.member(t.Self) == nil:
		node = readiness{"node", false, "not a member yet"}
	}
	leader := readiness{"leader", false, "none"}
	if m := t.member(t.Leader); m != nil {
		leader = readiness{"leader", true, fmt.Sprintf("ok (%s)", t.Leader)}
		if _, _, known := m.hostPort(); !known { // CLUSTER SLOTS could name nobody
			leader = readiness{"leader", false, fmt.Sprintf("%s, whose address for clients is not known yet", t.Leader)}
		}
	}
	state := readiness{"state", true, "ok"}
	if stale > maxReadyStale {
		state = readiness{"state", false, fmt.Sprintf("%v old", stale.Round(time.Second))}
	}
	return []readiness{node, leader, state}
}
