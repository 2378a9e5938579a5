package raftstore

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
)

// newHclog passes on what the Raft library logs from warnings upward; what it does otherwise
// is this package's to tell. A line that the node expects is logged at the level debug.
func newHclog(log *slog.Logger, expects func(libraryLine) bool) hclog.Logger {
	logger := hclog.NewInterceptLogger(&hclog.LoggerOptions{Level: hclog.Off, Output: io.Discard})
	logger.RegisterSink(&lineSink{log, expects})
	return logger
}

// libraryLine is a line that the Raft library logs: a text, and names and values by turns.
type libraryLine struct {
	text string
	args []any
}

// value returns the value of a name, or nil.
func (l libraryLine) value(name string) any {
	if i := slices.Index(l.args, any(name)); i >= 0 && i+1 < len(l.args) {
		return l.args[i+1]
	}
	return nil
}

// lineSink turns a line of the library into a record.
type lineSink struct {
	log     *slog.Logger
	expects func(libraryLine) bool
}

// Accept is part of hclog.SinkAdapter.
func (s *lineSink) Accept(_ string, level hclog.Level, text string, args ...any) {
	at := slog.LevelWarn
	switch {
	case level < hclog.Warn:
		return
	case s.expects(libraryLine{text, args}):
		at = slog.LevelDebug
	case level == hclog.Error:
		at = slog.LevelError
	}
	s.log.Log(context.Background(), at, "raft: "+text, readable(args)...)
}

// readable returns names and values as a person reads them.
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
