package commands

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/httpapi"
)

// TestHTTPCheckTellsBrowsersFromProxies checks that a browser's own request to weir, for a page of another site,
// takes nothing. A proxy's request for the same browser is decided.
func TestHTTPCheckTellsBrowsersFromProxies(t *testing.T) {
	const (
		browser = "Connection: keep-alive\nUser-Agent: Mozilla/5.0\nAccept: */*\n"
		image   = browser + "Sec-Fetch-Site: cross-site\nSec-Fetch-Mode: no-cors\nSec-Fetch-Dest: image\n"
		ajax    = "Origin: https://app.example\nSec-Fetch-Site: cross-site\nSec-Fetch-Mode: " +
			"cors\nSec-Fetch-Dest: empty\n"
		basic     = "Authorization: Basic OnNlc2FtZQ==\n"
		forwarded = "X-Forwarded-For: 192.0.2.7\n"
	)
	const protected, open, closed = "protected", "open", "with a password"
	for _, c := range []struct {
		what, access, line, headers string
		status                      int
	}{
		{"a picture in another site's page", protected, "GET %s HTTP/1.1", image, 403},
		{"a picture, though the port is open", open, "GET %s HTTP/1.1", image, 403},
		{"a picture, the browser knows the password", closed, "GET %s HTTP/1.1", image + basic, 403},
		{"a picture in a page of a neighbour", protected, "GET %s HTTP/1.1",
			strings.Replace(image, "cross-site", "same-site", 1), 403},
		{"a script of another site", protected, "GET %s HTTP/1.1", browser + ajax, 403},
		{"its form", protected, "POST %s HTTP/1.1", browser + "Content-Length: 0\nOrigin: null\n", 403},
		{"an older browser's script", protected, "GET %s HTTP/1.1", browser + "Origin: http://evil.example\n", 403},
		{"a script on another port of this machine", protected, "GET %s HTTP/1.1",
			browser + "Origin: http://127.0.0.1:8080\n", 403},
		{"its question whether it may send a proxy's header", protected, "OPTIONS %s HTTP/1.1",
			browser + ajax + "Access-Control-Request-Headers: x-forwarded-for\n", 403},
		{"its WebSocket", protected, "GET %s HTTP/1.1",
			"Connection: Upgrade\nUpgrade: websocket\nOrigin: http://evil.example\n", 403},
		{"its WebSocket, in Firefox", protected, "GET %s HTTP/1.1",
			"Connection: keep-alive, Upgrade\nUpgrade: websocket\n" + ajax, 403},
		{"a page whose name was made to point here", protected, "GET %s HTTP/1.1\nHost: evil.example", browser, 403},
		{"somebody who types the address", protected, "GET %s HTTP/1.1", browser + "Sec-Fetch-Site: none\n", 204},
		{"a program that keeps its connections", protected, "GET %s HTTP/1.1", "Connection: keep-alive\n", 204},
		{"that program, by a name", open, "GET %s HTTP/1.1\nHost: weir:6381", "Connection: keep-alive\n", 204},

		{"nginx as in the examples", protected, "GET %s HTTP/1.1\nHost: weir", ajax, 204},
		{"nginx that closes its connections", protected, "GET %s HTTP/1.1", "Connection: close\n" + ajax, 204},
		{"an nginx of old that hands on Connection", protected, "GET %s HTTP/1.0", browser + ajax, 204},
		{"nginx that hands on Connection, and names the original", protected, "GET %s HTTP/1.1\nHost: api.example",
			browser + ajax + "X-Original-URI: /a\n", 204},
		{"Caddy", protected, "GET %s HTTP/1.1\nHost: api.example", ajax + forwarded + "X-Forwarded-Uri: /a\n", 204},
		{"Caddy, of a WebSocket", protected, "GET %s HTTP/1.1\nHost: api.example",
			"Connection: Upgrade\nUpgrade: websocket\n" + ajax + forwarded, 204},
		{"Traefik, with the password", closed, "GET %s HTTP/1.1", ajax + forwarded + basic, 204},
		{"a proxy, without the password", closed, "GET %s HTTP/1.1", ajax + forwarded, 401},
	} {
		t.Run(c.what, func(t *testing.T) {
			cfg, check := Config{}, httpapi.CheckProtected
			switch c.access {
			case open:
				check = httpapi.CheckOpen
			case closed:
				cfg.Password = "sesame"
			}
			h, s := checked(t, cfg, check)
			line := fmt.Sprintf(c.line, "/check/api?key=k")
			require.Equal(t, c.status, sendHTTP(t, h, line+"\n"+c.headers))
			_, taken := s.lim.Inspect([]byte("policy|api|0|k"))
			require.Equal(t, c.status == http.StatusNoContent, taken, "only a request that is decided may take units")
		})
	}
}

// TestHTTPCheckTakesHTTP2ForABrowsers covers HTTP/2, which has no Connection header, so any such request may be a
// browser's.
func TestHTTPCheckTakesHTTP2ForABrowsers(t *testing.T) {
	h, _ := checked(t, Config{}, httpapi.CheckOpen)
	for proxy, status := range map[string]int{"": http.StatusForbidden, "192.0.2.7": http.StatusNoContent} {
		w := visit(h, "/check/api?key=k", func(r *http.Request) {
			r.Proto, r.ProtoMajor, r.ProtoMinor = "HTTP/2.0", 2, 0
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			if proxy != "" {
				r.Header.Set("X-Forwarded-For", proxy)
			}
		})
		require.Equal(t, status, w.Code, "forwarded for %q", proxy)
	}
}

// sendHTTP sends a request over a connection unchanged, with a Host unless it has one, and returns the status of the
// answer.
func sendHTTP(t *testing.T, h *httpapi.Server, request string) (status int) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(ln) }()
	defer func() {
		require.NoError(t, h.Close())
		require.NoError(t, <-ended)
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	if !strings.Contains(request, "\nHost: ") {
		first, rest, _ := strings.Cut(request, "\n")
		request = first + "\nHost: " + ln.Addr().String() + "\n" + rest
	}
	_, err = c.Write([]byte(strings.ReplaceAll(request, "\n", "\r\n") + "\r\n"))
	require.NoError(t, err)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return res.StatusCode
}
