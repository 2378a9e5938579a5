package raftstore

import (
	"bytes"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// newHclog passes on what the Raft library has to say from warnings upward; what
// it does otherwise is this package's to tell.
func newHclog(log *slog.Logger) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Level: hclog.Warn, Output: lineWriter{log}, DisableTime: true, Color: hclog.ColorOff,
	})
}

// lineWriter turns a line of the library into a record.
type lineWriter struct{ log *slog.Logger }

func (w lineWriter) Write(b []byte) (int, error) {
	line := string(bytes.TrimSpace(b))
	if bytes.Contains(b, []byte("[ERROR]")) {
		w.log.Error("raft", "said", line)
	} else {
		w.log.Warn("raft", "said", line)
	}
	return len(b), nil
}
