package systems

import (
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/weirproc"
)

const (
	websiteLogin  = "/api/auth/login"
	websiteUser   = "/api/users/550e8400-e29b-41d4-a716-446655440000"
	websiteUserID = "550e8400-e29b-41d4-a716-446655440000"
)

// TestWebsite runs the examples of the website's document with Bucket4j on weir and, if redis-server is installed, on
// Redis. The same program must get the same answers.
func TestWebsite(t *testing.T) {
	need(t, "on Debian: apt install default-jdk-headless maven", "java", "mvn")
	t.Run("weir", func(t *testing.T) { websiteOn(t, weirproc.Start(t).Addr) })
	t.Run("redis", func(t *testing.T) {
		need(t, "on Debian: apt install redis-server", "redis-server")
		websiteOn(t, startRedisFor(t))
	})
}

// startRedisFor starts a Redis without persistence.
func startRedisFor(t *testing.T) (addr string) {
	addr = freeport.Addr(t)
	_, port, _ := strings.Cut(addr, ":")
	cmd := exec.Command("redis-server", "--port", port, "--save", "", "--dir", t.TempDir())
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = rdb.Close() })
	require.Eventually(t, func() bool { return rdb.Ping(t.Context()).Err() == nil }, weirproc.Wait, 10*time.Millisecond)
	return addr
}

// TestWebsiteWithoutAStore checks that requests pass unlimited without a store, and that the log says so once.
func TestWebsiteWithoutAStore(t *testing.T) {
	w := javaWebsite(t, freeport.Addr(t))
	for range 12 {
		w.says("401", from("192.0.2.1", "POST", websiteLogin))
	}
	w.logs("The store of the limits is not reached: requests pass")
	require.Equal(t, 1, strings.Count(w.logged(), "is not reached"))
}

// TestWebsiteOnABusyStore checks that no login of many at once tries a password while the store is there and does not
// answer in time.
func TestWebsiteOnABusyStore(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = busy.Close() })
	go func() {
		for {
			nc, err := busy.Accept()
			if err != nil {
				return
			}
			defer nc.Close() // at the end: it is open and silent until then
		}
	}()
	w := javaWebsite(t, busy.Addr().String(), "spring.data.redis.timeout=300ms")
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			a, err := w.send(from("192.0.2.1", "POST", websiteLogin))
			if assert.NoError(t, err) {
				assert.Equal(t, "503  1", strings.TrimSpace(strconv.Itoa(a.status)+" "+a.remaining+" "+a.retryAfter))
			}
		})
	}
	all.Wait()
	w.logs("The store of the limits is busy")
	require.Zero(t, strings.Count(w.logged(), "is not reached"), "it is reached")
}

func websiteOn(t *testing.T, addr string) {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = rdb.Close() })
	t.Run("application.yml", func(t *testing.T) {
		w := javaWebsite(t, addr)
		w.loginRecoveryDefault(rdb)
		w.clients()
		w.excludedPaths()
		w.fifteenLogins()
	})
	t.Run("users, payments, no limit for logins", func(t *testing.T) {
		w := javaWebsite(t, addr, "spring.profiles.active=payments", "aquastream.rate-limit.user-header=X-User-Id",
			"aquastream.rate-limit.limits.login.enabled=false")
		w.usersAndPayments(rdb)
	})
	t.Run("production", func(t *testing.T) {
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
		w := javaWebsite(t, addr, "spring.profiles.active=production")
		for left := 4; left >= 0; left-- {
			w.says("401 "+strconv.Itoa(left), from("192.0.2.1", "POST", websiteLogin))
		}
		w.refuses("login", 60, from("192.0.2.1", "POST", websiteLogin))
		for left := 2; left >= 0; left-- {
			w.says("200 "+strconv.Itoa(left), from("192.0.2.1", "POST", "/api/password/reset"))
		}
		w.refuses("recovery", 600, from("192.0.2.1", "POST", "/api/password/reset"))
		w.burst("default", 60, 10, 60, from("192.0.2.1", "GET", websiteUser))
	})
	for _, off := range []string{"spring.profiles.active=dev", "aquastream.rate-limit.enabled=false"} {
		t.Run(off, func(t *testing.T) {
			require.NoError(t, rdb.FlushAll(t.Context()).Err())
			w := javaWebsite(t, addr, off)
			for range 50 {
				w.says("401", from("192.0.2.1", "POST", websiteLogin))
			}
			require.Empty(t, rdb.Keys(t.Context(), "*").Val(), "nothing is counted")
		})
	}
}

// loginRecoveryDefault uses up the three limits of one client, and looks at its buckets as the document does.
func (w *website) loginRecoveryDefault(rdb *redis.Client) {
	const ip = "192.168.1.100"
	for left := 9; left >= 0; left-- {
		w.says("401 "+strconv.Itoa(left), from(ip, "POST", websiteLogin))
	}
	w.refuses("login", 60, from(ip, "POST", websiteLogin))
	w.refuses("login", 60, from(ip, "POST", "/signin"))
	w.logs("[WARN] RateLimitFilter - Rate limit exceeded - Client: ip:192.168.1.100, " +
		"Endpoint: POST /api/auth/login, Limit: login, Retry after: 60s\n")
	for left, path := range []string{"/forgot", "/reset", "/api/recovery/2", "/recovery", "/api/password/forgot?x=1"} {
		w.says("200 "+strconv.Itoa(4-left), from(ip, "POST", path))
	}
	w.refuses("recovery", 300, from(ip, "POST", "/recovery"))
	w.burst("default", 100, 10, 60, from(ip, "GET", websiteUser))

	require.ElementsMatch(w.t, []string{"rate-limit:ip:192.168.1.100:login", "rate-limit:ip:192.168.1.100:recovery",
		"rate-limit:ip:192.168.1.100:default"}, rdb.Keys(w.t.Context(), "rate-limit:*").Val())
	bucket, err := rdb.Get(w.t.Context(), "rate-limit:ip:192.168.1.100:login").Bytes()
	require.NoError(w.t, err)
	require.NotEmpty(w.t, bucket)
	ttl := rdb.PTTL(w.t.Context(), "rate-limit:ip:192.168.1.100:login").Val()
	require.Greater(w.t, ttl, 30*time.Second)
	require.LessOrEqual(w.t, ttl, 70*time.Second, "a minute until the bucket is full, and ten seconds")
}

// burst sends requests until the first denial. The capacity must pass, and the refill during the test.
func (w *website) burst(limit string, capacity, perSecond, retryAfter int, q websiteRequest) {
	w.t.Helper()
	start, admitted := time.Now(), 0
	for {
		a, err := w.send(q)
		require.NoError(w.t, err)
		if a.status == 429 {
			break
		}
		require.Equal(w.t, 200, a.status)
		admitted++
	}
	require.GreaterOrEqual(w.t, admitted, capacity)
	require.LessOrEqual(w.t, float64(admitted), float64(capacity)+float64(perSecond)*time.Since(start).Seconds())
	w.logs("Limit: " + limit + ", Retry after: " + strconv.Itoa(retryAfter) + "s")
}

// clients checks what identifies a client: X-Forwarded-For, else X-Real-IP, else the connection.
func (w *website) clients() {
	login := func(headers ...string) websiteRequest { return websiteRequest{"POST", websiteLogin, headers} }
	w.says("401 9", login("X-Forwarded-For", "198.51.100.1"))
	w.says("401 8", login("X-Forwarded-For", "198.51.100.1", "X-Real-IP", "198.51.100.9"))
	w.says("401 7", login("X-Real-IP", "198.51.100.1"))
	w.says("401 6", login("X-Forwarded-For", "6.6.6.6, 198.51.100.1"))
	w.says("401 5", login("X-Forwarded-For", "unknown", "X-Real-IP", "198.51.100.1"))
	w.says("401 9", login())
	w.says("401 8", login("X-User-Id", "42"))
	w.says("401 9", login("X-Forwarded-For", "2001:db8:1:2::1"))
	w.says("401 8", login("X-Forwarded-For", "2001:db8:1:2:ffff::2"))
}

// excludedPaths checks that excluded paths are not limited, and that no limited path passes for one of them.
func (w *website) excludedPaths() {
	for _, path := range []string{"/actuator/health", "/health", "/healthz", "/metrics", "/static/login.js",
		"/css/a.css", "/js/a.js", "/images/a.png"} {
		w.says("200", from("192.0.2.1", "GET", path))
	}
	w.says("200", from("192.0.2.1", "OPTIONS", websiteUser))
	w.counts("192.0.2.2", 9, "/health/../api/auth/login", "/static/%2e%2e/api/auth/login",
		"/health;/../api;a=b/auth/login")
}

// fifteenLogins runs the document's loop: fifteen logins, one a second. Ten pass, and one more every six seconds,
// which the document's comment omits.
func (w *website) fifteenLogins() {
	start, passed := time.Now(), 0
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	for i := range 15 {
		sent := time.Since(start)
		a, err := w.send(from("192.0.2.15", "POST", websiteLogin))
		require.NoError(w.t, err)
		atLeast, atMost := 10+int(sent/(6*time.Second)), 10+int((time.Since(start)+time.Second)/(6*time.Second))
		switch {
		case a.status == 401:
			passed++
			require.LessOrEqual(w.t, passed, atMost)
		default:
			require.Equal(w.t, "429 0 60", a.brief())
			require.GreaterOrEqual(w.t, passed, atLeast-1)
			require.GreaterOrEqual(w.t, i, 10)
		}
		<-pace.C
	}
	require.Less(w.t, passed, 15)
}

// usersAndPayments checks that users have their own buckets, payments their own limit, and logins no limit.
func (w *website) usersAndPayments(rdb *redis.Client) {
	require.NoError(w.t, rdb.FlushAll(w.t.Context()).Err())
	for range 30 {
		w.says("401", from("192.0.2.1", "POST", websiteLogin))
	}
	require.Empty(w.t, rdb.Keys(w.t.Context(), "*").Val())
	asUser := func(path, ip string) websiteRequest {
		return websiteRequest{"GET", path, []string{"X-Forwarded-For", ip, "X-User-Id", websiteUserID}}
	}
	w.says("200 4", from("192.0.2.1", "POST", "/recovery"))
	w.says("200 4", asUser("/recovery", "192.0.2.1"))
	w.says("200 3", asUser("/recovery", "192.0.2.77"))
	require.Contains(w.t, rdb.Keys(w.t.Context(), "rate-limit:*").Val(), "rate-limit:user:"+websiteUserID+":recovery")

	start, admitted := time.Now(), 0
	for a := (websiteAnswer{status: 200}); a.status == 200; admitted++ {
		var err error
		a, err = w.send(asUser("/api/payments/7", "192.0.2.1"))
		require.NoError(w.t, err)
	}
	require.GreaterOrEqual(w.t, admitted-1, 30)
	require.LessOrEqual(w.t, float64(admitted-1), 30+time.Since(start).Seconds()*5/2)
	w.logs("Endpoint: GET /api/payments/7, Limit: payment, Retry after: 1s")
}
