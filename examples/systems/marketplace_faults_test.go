package systems

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// marketplaceLeaderKilled creates deals of twelve channels, and logs in, while the leader of three nodes is killed.
// Each channel gets its five deals, and each account its fifty attempts.
func marketplaceLeaderKilled(t *testing.T, dir string) {
	cluster := weirproc.StartCluster(t, "--blacklist-key", "rl:blacklist:ip")
	m := startMarketplace(t, dir, cluster.Addrs()...)
	const channels, users, attempts = 12, 96, 80
	var created, refused, done atomic.Int64
	var guesses string
	killed := make(chan struct{})
	var all sync.WaitGroup
	for i := range users {
		all.Go(func() {
			a := m.post("/api/v1/deals", strconv.Itoa(1000+i), fmt.Sprintf(`{"channel":"k%d"}`, i%channels))
			switch a.status {
			case http.StatusCreated:
				created.Add(1)
			case http.StatusConflict:
				refused.Add(1)
			default:
				t.Errorf("%d %s", a.status, a.text)
			}
			if done.Add(1) == users/3 {
				close(killed)
			}
		})
	}
	all.Go(func() { guesses = m.guesses("5", attempts) })
	<-killed
	dead := cluster.KillLeader()
	all.Wait()
	require.Equal(t, "60 36", fmt.Sprint(created.Load(), " ", refused.Load()), "five deals of each channel")
	require.Equal(t, "50 30", guesses)
	dead.Start()
	for _, node := range cluster.Nodes {
		rdb := node.Redis()
		require.Eventually(t, func() bool {
			return marketplaceSay(t.Context(), rdb, "RL.CHECK channel-deals k0 COST 0") != "" &&
				rdb.Ping(t.Context()).Err() == nil
		}, weirproc.Wait, 20*time.Millisecond)
		require.True(t, strings.HasPrefix(marketplaceSay(t.Context(), rdb, "RL.CHECK channel-deals k0 COST 0"),
			"1 0 0 "), "every node knows of all five")
	}
}

// marketplaceLosesWeir loses weir between the filters of a request and its controller, which is refused like a request
// that meets no weir in the filters.
func marketplaceLosesWeir(t *testing.T, dir string) {
	w := startMarketplaceWeir(t)
	m := startMarketplace(t, dir, marketplaceWithout(t, w.Addr, "RL.ACQUIRE"))
	a := m.post("/api/v1/deals", "90", `{"channel":"k"}`)
	require.Equal(t, "503 1", fmt.Sprint(a.status, " ", a.header.Get("Retry-After")), a.text)
	require.Contains(t, a.text, `"Limits cannot be checked"`)
}

// marketplaceWithout returns the address of a proxy that closes a connection when a client sends this word.
func marketplaceWithout(t *testing.T, to, word string) (addr string) {
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = proxy.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			client, err := proxy.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				_ = client.Close()
				continue
			}
			all.Go(func() {
				_, _ = io.Copy(client, server)
				_ = client.Close()
			})
			all.Go(func() {
				defer func() { _ = server.Close() }()
				buf := make([]byte, 1<<16)
				for {
					n, err := client.Read(buf)
					if err != nil || strings.Contains(string(buf[:n]), word) {
						return
					}
					_, _ = server.Write(buf[:n])
				}
			})
		}
	})
	return proxy.Addr().String()
}

// marketplaceStartsFirst starts the program before weir. The program waits for weir, and says so when it gives up.
func marketplaceStartsFirst(t *testing.T, dir string) {
	w := startMarketplaceWeir(t)
	w.Kill()
	cmd := marketplaceCommand(dir, marketplaceAddr(t), w.Addr)
	cmd.Env = append(cmd.Env, "START_PATIENCE=1s")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "weir took no policies within 1 s: start weir, or set WEIR to its addresses")

	addr := marketplaceAddr(t)
	cmd = marketplaceCommand(dir, addr, w.Addr)
	said := &marketplaceLog{words: "weir does not decide yet", said: make(chan struct{})}
	cmd.Stdout = said
	require.NoError(t, cmd.Start())
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	select {
	case <-said.said:
	case <-time.After(marketplaceStart):
		t.Fatal("the program does not wait for weir")
	}
	w.Start()
	m := &marketplaceApp{t: t, addr: addr}
	require.Eventually(t, func() bool {
		nc, err := net.Dial("tcp", addr)
		return err == nil && nc.Close() == nil
	}, marketplaceStart, 20*time.Millisecond)
	require.Equal(t, http.StatusOK, m.get("/api/v1/channels", "90").status)
}

// marketplaceLog closes said when a write contains the words.
type marketplaceLog struct {
	words string
	said  chan struct{}
	once  sync.Once
}

func (l *marketplaceLog) Write(b []byte) (int, error) {
	if strings.Contains(string(b), l.words) {
		l.once.Do(func() { close(l.said) })
	}
	return len(b), nil
}
