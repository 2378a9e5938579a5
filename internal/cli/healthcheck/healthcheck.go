// Package healthcheck asks a server whether it is ready (weir healthcheck).
package healthcheck

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	// Timeout is long for a healthy server, and shorter than the interval at which platforms check health.
	Timeout = 3 * time.Second
	// MaxBytes bounds the answer, because another server may answer. /readyz takes a few lines.
	MaxBytes = 4 << 10
)

var (
	ErrNotReady = errors.New("not ready")
	ErrNoHTTP   = errors.New("--http must not be empty: the health check requests /readyz there")
)

// Command asks a server whether it is ready. It serves container images without a shell or curl. It reads the
// variables of weir serve, such as WEIR_HTTP.
type Command struct {
	HTTP    string `name:"http" aliases:"addr" address:"" mayempty:"" default:"127.0.0.1:6381" help:"The server's --http. Without a host: this machine."`
	HTTPTLS bool   `name:"http-tls" help:"Use HTTPS, for a server with --http-tls. Its certificate is not verified: no secret is sent or received."`
}

func (h *Command) Run() error { return h.Ask(os.Stdout) }

// Ask copies the answer of /readyz to w. The error is nil if the status is 200.
func (h *Command) Ask(w io.Writer) error {
	if h.HTTP == "" {
		return ErrNoHTTP
	}
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	scheme := "http://"
	if h.HTTPTLS {
		scheme = "https://"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+h.HTTP+"/readyz", nil)
	if err != nil {
		return err
	}
	direct := &http.Transport{ // no proxy, because a proxy would answer itself
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	reply, err := direct.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("--http %s: %w", h.HTTP, err)
	}
	defer reply.Body.Close()
	if _, err = io.Copy(w, io.LimitReader(reply.Body, MaxBytes)); reply.StatusCode != http.StatusOK {
		return cmp.Or(err, fmt.Errorf("%w: %s answers %s", ErrNotReady, h.HTTP, reply.Status))
	}
	return err
}
