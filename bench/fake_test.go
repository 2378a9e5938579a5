package bench

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"

	"github.com/weir-project/weir/bench/servers"
)

// fakeServer answers INFO, FLUSHALL and similar commands itself, and every other command by reply. As a Server it
// records its calls.
type fakeServer struct {
	addr    string
	reply   func(request []string) string // raw RESP
	startup error

	mu    sync.Mutex
	calls []string
}

func (f *fakeServer) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

func (f *fakeServer) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func (f *fakeServer) Start(context.Context) error             { f.note("start"); return f.startup }
func (f *fakeServer) Stop() error                             { f.note("stop"); return nil }
func (f *fakeServer) Nodes() []string                         { return []string{f.addr} }
func (f *fakeServer) PIDs() []int                             { return nil }
func (f *fakeServer) CommandLines() [][]string                { return [][]string{{"fake"}} }
func (f *fakeServer) Version(context.Context) (string, error) { return servers.VersionAt(f.addr) }

func (f *fakeServer) Addr(context.Context) (string, error) { return f.addr, nil }

func startFake(t *testing.T, f *fakeServer) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := redcon.NewServer(ln.Addr().String(), f.handle, nil, nil)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	t.Cleanup(func() {
		_ = ln.Close()
		<-served
	})
	f.addr = ln.Addr().String()
	return f.addr
}

func (f *fakeServer) handle(conn redcon.Conn, cmd redcon.Command) {
	request := make([]string, len(cmd.Args))
	for i, arg := range cmd.Args {
		request[i] = string(arg)
	}
	switch request[0] {
	case "INFO":
		conn.WriteBulkString("# Server\r\nredis_version:7.4.0\r\nweir_version:1.2.3\r\n")
	case "FLUSHALL", "SAVE", "SCRIPT", "PING":
		f.note(request[0])
		conn.WriteString("OK")
	default:
		conn.WriteRaw([]byte(f.reply(request)))
	}
}

// limiterOf returns a reply function that admits this many requests of every key, and denies further ones.
func limiterOf(limit int) func([]string) string {
	used := make(map[string]int)
	var mu sync.Mutex
	return func(request []string) string {
		mu.Lock()
		defer mu.Unlock()
		if used[request[1]]++; used[request[1]] > limit {
			return "*3\r\n:0\r\n:0\r\n:100\r\n"
		}
		return "*3\r\n:1\r\n:0\r\n:0\r\n"
	}
}

// fakeGenerator answers from a table with a rate for each target address, and records its jobs.
type fakeGenerator struct {
	perSecond map[string]float64
	jobs      []Job
	fail      error
	before    func() // called during each load; nil for nothing
}

func (f *fakeGenerator) Run(_ context.Context, job Job) (Outcome, error) {
	f.jobs = append(f.jobs, job)
	if f.before != nil {
		f.before()
	}
	return Outcome{
		Decisions: job.Requests, Read: job.Requests, Admitted: job.Requests / 2, PerSecond: f.perSecond[job.Addr],
		Latency: Latency{P50Ms: 1, P999Ms: 2}, Busy: time.Second, Took: 2 * time.Second,
	}, f.fail
}
