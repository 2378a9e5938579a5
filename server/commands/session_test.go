package commands

import (
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/servertest"
)

// fakeClient replaces the connection of a session.
type fakeClient struct {
	id   int64
	gone chan struct{}
	cert *x509.Certificate
	// await is called before the session waits.
	await func()

	mu     sync.Mutex
	pushed bytes.Buffer
	killed bool
	slow   int // how often the session announced a slow read cycle
}

func (c *fakeClient) ID() int64          { return c.id }
func (c *fakeClient) RemoteAddr() string { return "127.0.0.1:" + strconv.FormatInt(40000+c.id, 10) }
func (c *fakeClient) LocalAddr() string  { return "127.0.0.1:6380" }
func (c *fakeClient) SetAuthed(bool)     {}

func (c *fakeClient) Certificate() *x509.Certificate { return c.cert }

func (c *fakeClient) MayBlock() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow++
}

func (c *fakeClient) Await(wait func(gone <-chan struct{})) {
	if c.await != nil {
		c.await()
	}
	wait(c.gone)
}

func (c *fakeClient) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
}

func (c *fakeClient) Push(msg []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pushed.Write(msg)
	return true
}

// messages returns the messages that were pushed since the previous call.
func (c *fakeClient) messages() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.pushed.String()
	c.pushed.Reset()
	return text
}

// testServer is a server without a socket.
type testServer struct {
	*Shared
	lim  *servertest.TableLimiter
	last int64
}

func newTestServer(t testing.TB, cfg Config) *testServer {
	t.Helper()
	cfg.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:6380"
	}
	if cfg.Version == "" {
		cfg.Version = "0.1.0-test"
	}
	lim := servertest.NewTableLimiter()
	srv, err := NewShared(cfg, lim)
	require.NoError(t, err)
	return &testServer{Shared: srv, lim: lim}
}

// testClient sends commands to its own session and reads the replies.
type testClient struct {
	t    testing.TB
	sess *Session
	wire resp.Wire // the replies to sess
	fake *fakeClient
}

func (s *testServer) client(t testing.TB) *testClient {
	s.last++
	fake := &fakeClient{id: s.last}
	c := &testClient{t: t, fake: fake}
	c.sess = NewSession(s.Shared, fake, &c.wire)
	return c
}

// defaultClient returns a client of a server of its own.
func defaultClient(t testing.TB) *testClient {
	return newTestServer(t, Config{EnableDebug: true}).client(t)
}

// raw sends one command and returns the bytes of its reply.
func (c *testClient) raw(args ...string) string {
	c.t.Helper()
	send := make([][]byte, len(args))
	for i, a := range args {
		send[i] = []byte(a)
	}
	c.sess.Do(send)
	c.sess.DecidePending()
	reply := string(c.wire.Out)
	c.wire.Truncate(0)
	return reply
}

// say sends a line of words and returns the reply in one line.
func (c *testClient) say(line string) string {
	c.t.Helper()
	return flat(c.t, c.raw(split(line)...))
}

// split cuts a line at blanks. A word in double quotes may contain blanks.
func split(line string) (words []string) {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimLeft(line, " ") {
		if line[0] == '"' {
			end := strings.IndexByte(line[1:], '"') + 1
			words = append(words, line[1:end])
			line = line[end+1:]
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		words = append(words, word)
		line = rest
	}
	return words
}

// flat returns replies in one line: elements separated by blanks, errors with their dash, and null as nil.
func flat(t testing.TB, replies string) string {
	t.Helper()
	var out []string
	for rest := replies; rest != ""; {
		value, after, err := readReply(rest)
		require.NoError(t, err, "%q", replies)
		out = append(out, value.flat())
		rest = after
	}
	return strings.Join(out, "; ")
}

// reply is one decoded value of RESP2 or RESP3.
type reply struct {
	kind  byte
	text  string
	items []reply
}

func (r reply) flat() string {
	switch r.kind {
	case '-':
		return "-" + r.text
	case '_':
		return "nil"
	}
	if r.items == nil {
		return r.text
	}
	var parts []string
	for _, item := range r.items {
		parts = append(parts, item.flat())
	}
	return strings.Join(parts, " ")
}

// get returns the value of a key in a map reply.
func (r reply) get(key string) reply {
	for i := 0; i+1 < len(r.items); i += 2 {
		if r.items[i].text == key {
			return r.items[i+1]
		}
	}
	return reply{}
}

var errBadReply = errors.New("not a reply")

// readReply decodes one value strictly.
func readReply(b string) (r reply, rest string, err error) {
	line, rest, ok := strings.Cut(b, "\r\n")
	if !ok || line == "" {
		return r, b, errBadReply
	}
	r = reply{kind: line[0], text: line[1:]}
	switch r.kind {
	case '+', '-':
		return r, rest, nil
	case '_':
		return r, rest, nil
	}
	n, err := strconv.ParseInt(r.text, 10, 64)
	if err != nil {
		return r, b, err
	}
	switch r.kind {
	case ':':
		return r, rest, nil
	case '$', '=':
		if n < 0 {
			return reply{kind: '_'}, rest, nil
		}
		if int64(len(rest)) < n+2 || rest[n:n+2] != "\r\n" {
			return r, b, errBadReply
		}
		r.text = rest[:n]
		return r, rest[n+2:], nil
	case '%':
		n *= 2
	case '*', '~', '>':
	default:
		return r, b, errBadReply
	}
	if n < 0 {
		return reply{kind: '_'}, rest, nil
	}
	r.text, r.items = "", []reply{}
	for range n {
		var item reply
		if item, rest, err = readReply(rest); err != nil {
			return r, b, err
		}
		r.items = append(r.items, item)
	}
	return r, rest, nil
}

// value decodes the reply to a line.
func (c *testClient) value(line string) reply {
	c.t.Helper()
	r, rest, err := readReply(c.raw(split(line)...))
	require.NoError(c.t, err)
	require.Empty(c.t, rest)
	return r
}

// clusterClient is a client of one node without a socket.
func clusterClient(t testing.TB, f *servertest.FakeCluster, id string, cfg Config) (*testClient,
	*servertest.FakeReplica) {
	t.Helper()
	node := f.Node(id)
	srv, err := NewShared(silent(cfg), node)
	require.NoError(t, err)
	return (&testServer{Shared: srv}).client(t), node
}

func silent(cfg Config) Config {
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// stopServing tells the sessions that the server stops.
func stopServing(s *Shared) {
	s.Draining.Store(true)
	close(s.Stop)
}
