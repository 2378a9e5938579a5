package logging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// New returns a logger that forwards the Raft library's lines from warnings upward. Other events of the library are
// logged by weir itself. A line that expects reports is logged at the level debug.
func New(log *slog.Logger, expects func(Line) bool) hclog.Logger {
	logger := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	logger.RegisterSink(&lineSink{log, expects})
	return logger
}

// Line is a log line of the Raft library: a text, and alternating names and values.
type Line struct {
	Text string
	args []any
}

// Value returns the value of a name, or nil.
func (l Line) Value(name string) any {
	if i := slices.Index(l.args, any(name)); i >= 0 && i+1 < len(l.args) {
		return l.args[i+1]
	}
	return nil
}

// lineSink logs each line of the library to log.
type lineSink struct {
	log     *slog.Logger
	expects func(Line) bool
}

// Accept is part of hclog.SinkAdapter.
func (s *lineSink) Accept(_ string, level hclog.Level, text string, args ...any) {
	at := slog.LevelWarn
	switch {
	case level < hclog.Warn:
		return
	case s.expects(Line{text, args}):
		at = slog.LevelDebug
	case level == hclog.Error:
		at = slog.LevelError
	}
	s.log.Log(context.Background(), at, "raft: "+text, readable(args)...)
}

// readable returns names and values in readable form.
func readable(args []any) []any {
	args = slices.Clone(args)
	for i, arg := range args {
		switch a := arg.(type) {
		case raft.Server:
			args[i] = string(a.ID)
		case hclog.Format:
			args[i] = fmt.Sprintf(a[0].(string), a[1:]...)
		}
	}
	return args
}

// RefusesCandidate reports whether the library refused its vote to a candidate because a leader is known or because
// the candidate's log is behind. Raft refuses such votes in ordinary elections, and the candidate itself logs why it
// started an election.
func RefusesCandidate(line Line) bool {
	reason, vote := strings.CutPrefix(line.Text, "rejecting vote request since ")
	if !vote {
		reason, vote = strings.CutPrefix(line.Text, "rejecting pre-vote request since ")
	}
	return vote && slices.Contains([]string{"we have a leader", "our last term is greater",
		"our last index is greater"}, reason)
}

// BelongsToStart reports whether a line of the library is normal at the start of a cluster, or while a follower
// catches up.
func BelongsToStart(line Line) bool {
	switch line.Text {
	case "no known peers, aborting election", "appendEntries rejected, sending older logs":
		return true
	case "failed to get previous log", "failed to get log": // a new node lacks it, or needs an image instead of it
		err, _ := line.Value("error").(error)
		return errors.Is(err, raft.ErrLogNotFound)
	case "heartbeat timeout reached, starting election":
		return line.Value("last-leader-id") == raft.ServerID("")
	}
	return false
}
