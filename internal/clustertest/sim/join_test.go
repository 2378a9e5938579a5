package sim

import (
	"bytes"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// lines counts the log writes that contain a text.
type lines struct {
	text string
	n    atomic.Int64
}

func (l *lines) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(l.text)) {
		l.n.Add(1)
	}
	return len(b), nil
}

// TestANodeThatWaitsForItsClusterIsQuiet checks that a waiting node logs about twice a minute, and joins when the
// others start.
func TestANodeThatWaitsForItsClusterIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := &lines{text: "not in a cluster yet"}
		s := newSimulation(Config{Nodes: 3, Logger: slog.New(slog.NewTextHandler(waits, nil))}, NewReport())
		s.founders = []string{addrOf(0), addrOf(1), addrOf(2)}
		defer s.end()
		s.newHost().start()
		time.Sleep(time.Hour)
		require.InDelta(t, int64(time.Hour/(30*time.Second)), waits.n.Load(), 10)
		s.newHost().start()
		s.newHost().start()
		require.True(t, s.answers())
	})
}
