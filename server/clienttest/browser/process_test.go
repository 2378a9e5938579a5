package browser

import (
	"os"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// patience bounds every wait of a test.
const patience = weirproc.Wait

func TestMain(m *testing.M) { os.Exit(weirproc.Main(m)) }

// process is a running server.
type process struct {
	*weirproc.Server
	t   *testing.T
	web string // the URL of its page
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	return processOf(t, weirproc.Start(t, args...))
}

func processOf(t *testing.T, s *weirproc.Server) *process { return &process{s, t, "http://" + s.HTTP} }

// startCluster starts three nodes. The first of them leads.
func startCluster(t *testing.T) (nodes []*process) {
	t.Helper()
	c := weirproc.StartCluster(t)
	nodes = []*process{processOf(t, c.Leader())}
	for _, s := range c.Nodes {
		if s != nodes[0].Server {
			nodes = append(nodes, processOf(t, s))
		}
	}
	return nodes
}

func (p *process) dial(options ...redis.DialOption) redis.Conn {
	p.t.Helper()
	c, err := redis.Dial("tcp", p.Addr, options...)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (p *process) do(command string, args ...any) any {
	p.t.Helper()
	reply, err := p.dial().Do(command, args...)
	require.NoError(p.t, err)
	return reply
}
