package main

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
	// healthTimeout is long for a server that is well, and shorter than the interval
	// at which platforms ask.
	healthTimeout = 3 * time.Second
	// maxHealthBytes bounds the answer of what may be another server: /readyz takes
	// a few lines.
	maxHealthBytes = 4 << 10
)

var (
	errNotReady = errors.New("not ready")
	errNoHTTP   = errors.New("--http must not be empty: /readyz is asked there")
)

// healthcheckCmd asks a server whether it is ready. It is there for images that
// hold nothing but weir, and reads the variable that serve reads.
type healthcheckCmd struct {
	HTTP    string `name:"http" address:"" mayempty:"" default:"127.0.0.1:6381" help:"The server's --http. Without a host: this machine."`
	HTTPTLS bool   `name:"http-tls" help:"Ask by HTTPS, as the server's --http-tls says. Its certificate is not verified: no secret is sent or received."`
}

func (h *healthcheckCmd) Run() error { return h.ask(os.Stdout) }

// ask copies what /readyz says to w. The error is nil if it says 200.
func (h *healthcheckCmd) ask(w io.Writer) error {
	if h.HTTP == "" {
		return errNoHTTP
	}
	ctx, cancel := context.WithTimeout(context.Background(), healthTimeout)
	defer cancel()
	scheme := "http://"
	if h.HTTPTLS {
		scheme = "https://"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+h.HTTP+"/readyz", nil)
	if err != nil {
		return err
	}
	direct := &http.Transport{ // no proxy: it would answer for itself
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	reply, err := direct.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("--http %s: %w", h.HTTP, err)
	}
	defer reply.Body.Close()
	if _, err = io.Copy(w, io.LimitReader(reply.Body, maxHealthBytes)); reply.StatusCode != http.StatusOK {
		return cmp.Or(err, fmt.Errorf("%w: %s answers %s", errNotReady, h.HTTP, reply.Status))
	}
	return err
}
