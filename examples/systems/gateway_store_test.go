package systems

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/weirproc"
)

// gatewayScript is the SHA-1 of the token-bucket script in the gateway's document.
const gatewayScript = "a27501a87b1775642eb421bbfb630f1ed357f5ae"

// gatewayStore is the server that holds the gateway's buckets: Redis, as in its document, or weir.
type gatewayStore interface {
	Start()
	Kill() // with SIGKILL
	Redis() *redis.Client
	addr() string
}

type gatewayWeir struct{ *weirproc.Server }

func (s gatewayWeir) addr() string { return s.Addr }

// startGatewayWeir starts a weir that loses nothing when it is killed.
func startGatewayWeir(t *testing.T) gatewayStore {
	s := gatewayWeir{weirproc.Start(t, "--data-dir", t.TempDir(), "--durability", "os",
		"--raft-addr", freeport.Addr(t))}
	// weir refuses a command of the log's newest form until every member has reported that it reads this form.
	rdb := s.Redis()
	require.Eventually(t, func() bool {
		return rdb.Do(t.Context(), "RL.POLICY", "SET", "probe", "LIMIT", "FIXED", "1h", "1", "LAYOUT",
			"probe:{key}").Err() == nil
	}, weirproc.Wait, 10*time.Millisecond)
	require.NoError(t, rdb.Do(t.Context(), "RL.POLICY", "DEL", "probe").Err())
	return s
}

// gatewayRedis is a process of redis-server.
type gatewayRedis struct {
	t       *testing.T
	address string
	cmd     *exec.Cmd
}

func startGatewayRedis(t *testing.T) gatewayStore {
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("SKIPPED: redis-server is missing (on Debian: apt install redis-server)")
	}
	s := &gatewayRedis{t: t, address: freeport.Addr(t)}
	t.Cleanup(s.Kill)
	s.Start()
	return s
}

func (s *gatewayRedis) addr() string { return s.address }

func (s *gatewayRedis) Start() {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(s.address)
	s.cmd = exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no",
		"--dir", s.t.TempDir())
	require.NoError(s.t, s.cmd.Start())
	rdb := s.Redis()
	require.Eventually(s.t, func() bool { return rdb.Ping(s.t.Context()).Err() == nil },
		weirproc.Wait, 10*time.Millisecond)
}

func (s *gatewayRedis) Kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func (s *gatewayRedis) Redis() *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: s.address, ContextTimeoutEnabled: true, DialerRetries: 1})
	s.t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// gatewayKnowsScript skips a test if weir does not recognise the script.
func gatewayKnowsScript(t *testing.T, s gatewayStore) {
	rdb := s.Redis()
	if err := rdb.ScriptLoad(t.Context(), script(t, gatewayScript)).Err(); err != nil {
		t.Skipf("SKIPPED: this weir does not know the script: %v", err)
	}
	require.NoError(t, rdb.Close())
}

// gatewayProcess is a running gateway and its log.
type gatewayProcess struct {
	t    *testing.T
	url  string
	cmd  *exec.Cmd
	mu   sync.Mutex
	text strings.Builder
}

func (p *gatewayProcess) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *gatewayProcess) count(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Count(p.text.String(), what)
}

// startGateway starts a gateway and waits until it listens.
func startGateway(t *testing.T, address string, argv []string, env ...string) *gatewayProcess {
	t.Helper()
	p := &gatewayProcess{t: t, url: "http://" + address, cmd: exec.Command(argv[0], argv[1:]...)}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = p, p, append(os.Environ(), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, p.cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	t.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-ended
		if t.Failed() {
			t.Logf("the gateway said:\n%s", p.text.String())
		}
	})
	var lost error
	require.Eventually(t, func() bool {
		select {
		case err := <-ended:
			lost = cmpError(err)
			ended <- err
			return true
		default:
		}
		nc, err := net.Dial("tcp", address)
		return err == nil && nc.Close() == nil
	}, 3*time.Minute, 20*time.Millisecond)
	require.NoError(t, lost)
	return p
}

func cmpError(err error) error {
	if err == nil {
		return errors.New("the gateway ended instead of serving")
	}
	return err
}

// gatewayConfig writes the gateway's own application.yml with the addresses of a test.
func gatewayConfig(t *testing.T, store, listen, upstream string, more ...string) string {
	t.Helper()
	text, err := os.ReadFile("gateway/src/main/resources/application.yml")
	require.NoError(t, err)
	port := func(address string) string { _, p, _ := net.SplitHostPort(address); return p }
	pairs := append([]string{
		"port: 8080", "port: " + port(listen), "port: 6379", "port: " + port(store), "127.0.0.1:3000", upstream,
		"scripts/token-bucket.lua", filepath.ToSlash(filepath.Join(t.TempDir(), "token-bucket.lua")),
		"timeout: 250ms", "timeout: 2s",
	}, more...)
	for i := 0; i < len(pairs); i += 2 {
		require.Contains(t, string(text), pairs[i])
	}
	file := filepath.Join(t.TempDir(), "application.yml")
	require.NoError(t, os.WriteFile(file, []byte(strings.NewReplacer(pairs...).Replace(string(text))), 0o644))
	return file
}
