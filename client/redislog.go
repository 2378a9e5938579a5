package client

import (
	"context"
	"fmt"
	"log/slog"
)

// RedisLogger passes the log lines of go-redis to a logger, at level debug. By default go-redis writes a line
// for each failed connection to standard error. In an outage that is several lines a second, while this package
// logs one. All Redis clients of a process share this logger, so the program sets it:
//
//	redis.SetLogger(client.RedisLogger{Logger: slog.Default()})
type RedisLogger struct {
	Logger *slog.Logger // required
}

// Printf implements the logger interface of go-redis.
func (l RedisLogger) Printf(ctx context.Context, format string, args ...any) {
	if l.Logger.Enabled(ctx, slog.LevelDebug) {
		l.Logger.DebugContext(ctx, fmt.Sprintf(format, args...))
	}
}
