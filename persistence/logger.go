package persistence

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleLogger logs Pebble's messages. Its Fatalf never returns. Pebble calls Fatalf when it cannot complete a promised
// write. Pebble's state would be undefined after a return.
type pebbleLogger struct {
	log   *slog.Logger
	fatal func(error)
}

var _ pebble.Logger = pebbleLogger{}

// Infof logs Pebble's routine messages (flushes, compactions) at debug level.
func (l pebbleLogger) Infof(format string, args ...any) {
	l.log.Debug("storage: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Error("storage: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.fatal(fmt.Errorf("%w: %s", ErrDisk, fmt.Sprintf(format, args...)))
}

// restartAdvice returns the text that says whether a server that runs alone can safely be restarted. Package raftstore
// has the texts for cluster nodes.
func restartAdvice(err error) string {
	if errors.Is(err, ErrDamagedLive) {
		return "no: weir does not start with damaged data; restore a copy or a backup"
	}
	return "yes, after the cause is removed: weir loses at most the last second before the failure"
}

// stopper returns the function that ends the process. It calls onFatal, which must not return. Without onFatal it logs
// the error and exits with code 1.
func stopper(log *slog.Logger, onFatal func(error)) func(error) {
	if onFatal == nil {
		onFatal = func(err error) {
			log.Error("weir stops", "error", err, "restart", restartAdvice(err))
			os.Exit(1)
		}
	}
	return func(err error) {
		onFatal(err)
		panic("persistence: OnFatal returned")
	}
}
