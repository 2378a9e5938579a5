package persistence

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"github.com/cockroachdb/pebble/v2"
)

// pebbleLogger passes on what Pebble has to say. Its Fatalf never returns: Pebble
// calls it when a write it has promised cannot be finished, and goes on in an
// undefined state if it comes back.
type pebbleLogger struct {
	log   *slog.Logger
	fatal func(error)
}

var _ pebble.Logger = pebbleLogger{}

// Infof drops the running commentary (flushes, compactions) unless asked for.
func (l pebbleLogger) Infof(format string, args ...any) {
	l.log.Debug("storage: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Errorf(format string, args ...any) {
	l.log.Error("storage: " + fmt.Sprintf(format, args...))
}

func (l pebbleLogger) Fatalf(format string, args ...any) {
	l.fatal(fmt.Errorf("%w: %s", ErrDisk, fmt.Sprintf(format, args...)))
}

// restartAdvice returns whether it is safe to start a server that runs alone again. Package
// raftstore has the advice for nodes of a cluster.
func restartAdvice(err error) string {
	if errors.Is(err, ErrDamagedLive) {
		return "no: it would refuse what is damaged; restore a copy or a backup"
	}
	return "yes, once the cause is gone: at most the last second before it is forgotten"
}

// stopper returns the function that ends the process: onFatal, which must not
// return, or else a log line and exit code 1.
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
