package client

import (
	"context"
	"fmt"
	"log/slog"
)

// RedisLogger passes the log lines of go-redis to a logger, at level debug. Its own logger
// writes each connection that fails to standard error, several lines a second in an outage that
// this package logs in one. It is one for all Redis clients of a process, so the program sets it:
//
//	redis.SetLogger(client.RedisLogger{Logger: slog.Default()})
type RedisLogger struct {
	Logger *slog.Logger // required
}

// Printf is what go-redis calls.
func (l RedisLogger) Printf(ctx context.Context, format string, args ...any) {
	if l.Logger.Enabled(ctx, slog.LevelDebug) {
		l.Logger.DebugContext(ctx, fmt.Sprintf(format, args...))
	}
}
