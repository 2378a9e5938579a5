package main

import (
	"log/slog"
	"net"
	"os"
)

// What systemd is told, see sd_notify(3).
const (
	nowReady    = "READY=1"
	nowStopping = "STOPPING=1"
)

// notify tells systemd how far the server is, where systemd asked for it. That it
// cannot be told is no reason to stop.
func notify(log *slog.Logger, state string) {
	name := os.Getenv("NOTIFY_SOCKET")
	if name == "" {
		return
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Net: "unixgram", Name: name})
	if err == nil {
		_, err = c.Write([]byte(state))
		_ = c.Close()
	}
	if err != nil {
		log.Warn("systemd cannot be told", "state", state, "error", err)
	}
}
