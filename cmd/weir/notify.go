package main

import (
	"log/slog"
	"net"
	"os"
)

// These messages go to systemd; see sd_notify(3).
const (
	nowReady    = "READY=1"
	nowStopping = "STOPPING=1"
)

// notify reports the state of the server to systemd, if systemd asked for it. A failure does not stop the server.
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
		log.Warn("cannot notify systemd", "state", state, "error", err)
	}
}
