package commands

import (
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/nearest"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// The cost of "did you mean" is bounded, because a client may send wrong names as fast as it can. Names are short, at
// most maxCandidates are compared, and suggestions have a rate limit. Without a limit, a program in a loop would spend
// all processors on suggestions that only a person reads.

const (
	// maxNearBytes is the longest name that is compared. Every command and the usual names of policies are shorter.
	maxNearBytes = 32
	// maxCandidates bounds the names that one error is compared with. It fits all commands, and the policies of most
	// servers.
	maxCandidates = 256
	// maxNearest is how many names an error shows.
	maxNearest = 3
	// suggestEvery and suggestBurst limit the rate of suggestions for all clients together. A search takes up to half a
	// millisecond.
	suggestEvery = 20 * time.Millisecond
	suggestBurst = 100
)

// suggestions limits the rate of suggestions by a GCRA of its own.
type suggestions struct{ due atomic.Int64 }

// take reports whether a suggestion is allowed at a time, and counts it.
func (s *suggestions) take(now time.Time) bool {
	for {
		due, at := s.due.Load(), now.UnixNano()
		if due-at > int64((suggestBurst-1)*suggestEvery) {
			return false
		}
		if s.due.CompareAndSwap(due, max(due, at)+int64(suggestEvery)) {
			return true
		}
	}
}

// candidates are the names that an error may suggest.
type candidates []string

// add adds a name unless it is longer than maxNearBytes, and reports whether candidates has space for another.
func (c *candidates) add(name string) (more bool) {
	if len(name) <= maxNearBytes {
		*c = append(*c, name)
	}
	return len(*c) < maxCandidates
}

// question returns " (did you mean A or B?)" for an unknown word. It returns an empty string if no name is similar.
func (c candidates) question(word []byte) string {
	if len(word) > maxNearBytes {
		return ""
	}
	near := nearest.Names(string(word), c)
	if len(near) == 0 {
		return ""
	}
	return " (did you mean " + strings.Join(near[:min(len(near), maxNearest)], " or ") + "?)"
}

// nearCommands adds to the error about an unknown command or subcommand the most similar ones that the user may send.
// The session has a user: a client that has not logged in gets no search.
func nearCommands(s *Session, args [][]byte, err error) error {
	all, name := s.srv.table.all, args[0]
	if cmd := s.srv.table.find(name); cmd != nil {
		if cmd.subs == nil || len(args) < 2 || cmd.sub(args[1]) != nil {
			return err // the command is known; the error has another cause
		}
		all, name = cmd.subs, args[1]
	}
	if slices.ContainsFunc(args[1:], func(b []byte) bool { return s.isBlacklist(b) }) {
		return resp.Error(service.ErrorText(err) + " (" + s.srv.cfg.BlacklistKey + " is the set of blocked " +
			"addresses: SADD, SREM, SISMEMBER, SMISMEMBER, SMEMBERS, SCARD and SSCAN work on it)")
	}
	if !s.srv.suggestions.take(time.Now()) {
		return err
	}
	if dataCommands[strings.ToUpper(string(name))] {
		return resp.Error(service.ErrorText(err) + " (" + keepsLimits + ")")
	}
	var known candidates
	for _, cmd := range all {
		if s.limits == nil || cmd.allowedTo(s.limits) {
			known.add(cmd.name)
		}
	}
	return resp.Error(service.ErrorText(err) + known.question(name))
}

// nearPolicies adds to the error about an unknown policy the most similar names, if the user may list policies.
func nearPolicies(s *Session, err error, name []byte) error {
	if s.limits != nil && !s.srv.table.named([]byte("RL.POLICY|LIST")).allowedTo(s.limits) ||
		!s.srv.suggestions.take(time.Now()) {
		return err
	}
	var known candidates
	s.srv.Here.Policies().Names(known.add)
	return resp.Error(service.ErrorText(err) + known.question(name))
}

// statusError returns the error of a decision, with similar policy names if the user may list policies.
func (s *Session) statusError(op *engine.Op, d *engine.Decision) error {
	err := service.StatusError(op, d)
	if d.Status == engine.UnknownPolicy {
		err = nearPolicies(s, err, service.UnknownPolicy(op, d))
	}
	return err
}
