package systems

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// marketplaceScript is the SHA-1 of the token bucket in the marketplace's document.
const marketplaceScript = "6c467d43a574bf5fbdeb4d532c986b314eff358f"

// TestMarketplace runs the examples of the marketplace's document in its order.
func TestMarketplace(t *testing.T) {
	need(t, "on Debian: apt install default-jdk-headless maven", "java", "mvn")
	dir := buildMarketplace(t)
	t.Run("document", func(t *testing.T) {
		w := startMarketplaceWeir(t)
		m := startMarketplace(t, dir, w.Addr)
		m.tiers(w)
		m.headers(w)
		m.business(w)
		m.outbound(w)
		m.bruteForce(w)
		m.blacklist(w)
		m.monitoring()
	})
	t.Run("leader killed", func(t *testing.T) { marketplaceLeaderKilled(t, dir) })
	t.Run("weir ends in a request", func(t *testing.T) { marketplaceLosesWeir(t, dir) })
	t.Run("weir starts late", func(t *testing.T) { marketplaceStartsFirst(t, dir) })
}

// tiers checks that each endpoint group has its rate, burst, window and key, and that a user has a global limit.
func (m *marketplaceApp) tiers(w *marketplaceWeir) {
	for i, tier := range []struct {
		method, path, body, key string
		burst, perMinute        int
	}{
		{"POST", "/api/v1/deals/5ab7f1a4-0f4e-4c0e-8a39-0f8bd1ac6f2e/deposit", "", "rl:deals:w:", 5, 20},
		{"GET", "/api/v1/deals", "", "rl:deals:r:", 20, 60},
		{"GET", "/api/v1/channels", "", "rl:channels:", 10, 30},
		{"POST", "/api/v1/creatives", "", "rl:creative:", 3, 10},
		{"POST", "/api/v1/disputes", `{"deal":"d"}`, "rl:dispute:", 2, 5},
		{"GET", "/api/v1/admin/deals", "", "rl:admin:", 30, 120},
	} {
		user := strconv.Itoa(100 + i)
		if tier.key == "rl:admin:" {
			user = "1"
		}
		q := marketplaceRequest{method: tier.method, path: tier.path, user: user, body: tier.body}
		passed, last := m.passes(tier.burst+1, q)
		require.Equal(m.t, tier.burst, passed, tier.key)
		require.Equal(m.t, strconv.Itoa(tier.perMinute), last.header.Get("X-RateLimit-Limit"), tier.key)
		w.says("tokenbucket", "TYPE "+tier.key+user)
		w.pass(time.Minute / time.Duration(tier.perMinute))
		passed, _ = m.passes(2, q)
		require.Equal(m.t, 1, passed, "%s: one more after a %dth of a minute", tier.key, tier.perMinute)
	}
	for try := range 4 { // POST /auth/validate: 5 a minute by address, burst 3
		status := m.login("7", "192.0.2.1", true).status
		require.Equal(m.t, map[bool]int{true: 200, false: 429}[try < 3], status)
	}
	w.says("tokenbucket", "TYPE rl:auth:192.0.2.1")

	// The global limit is 120 a minute with a burst of 30, over all groups. Group and global limit are one check: a
	// denial by one takes nothing from the other.
	user := "42"
	reads, _ := m.passes(20, marketplaceRequest{method: "GET", path: "/api/v1/deals", user: user})
	channels, last := m.passes(11, marketplaceRequest{method: "GET", path: "/api/v1/channels", user: user})
	require.Equal(m.t, []int{20, 10}, []int{reads, channels})
	require.Equal(m.t, "You have exceeded the rate limit of 30 requests per minute", last.body["detail"])
	last = m.post("/api/v1/creatives", user, "")
	require.Equal(m.t, http.StatusTooManyRequests, last.status)
	require.Equal(m.t, "You have exceeded the rate limit of 120 requests per minute", last.body["detail"])
	w.says("1 3 0 0 10 creative", "RL.CHECK creative 42 COST 0")
	require.Equal(m.t, http.StatusUnauthorized, m.get("/api/v1/deals", "").status)
	forged := marketplaceRequest{method: "GET", path: "/api/v1/deals", token: "43." + marketplaceSign("session:42")}
	require.Equal(m.t, http.StatusUnauthorized, m.do(forged).status, "nobody spends another user's tokens")
	w.pass(time.Hour)
}

// headers checks the headers of the document, and the body of a 429.
func (m *marketplaceApp) headers(w *marketplaceWeir) {
	q := marketplaceRequest{method: "GET", path: "/api/v1/deals", user: "43"}
	a := m.do(q)
	require.Equal(m.t, "60 19", a.header.Get("X-RateLimit-Limit")+" "+a.header.Get("X-RateLimit-Remaining"))
	require.Empty(m.t, a.header.Get("Retry-After"))
	reset, err := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64)
	require.NoError(m.t, err)
	require.InDelta(m.t, time.Now().Unix(), reset, 60, "in Unix seconds")
	w.says("1 0 0 20000 60 deals-read", "RL.CHECK deals-read 43 COST 19")
	denied := m.do(q)
	require.Equal(m.t, http.StatusTooManyRequests, denied.status)
	require.Equal(m.t, "60 0 1",
		strings.Join([]string{denied.header.Get("X-RateLimit-Limit"), denied.header.Get("X-RateLimit-Remaining"),
			denied.header.Get("Retry-After")}, " "))
	require.Equal(m.t, map[string]any{
		"type": "https://api.admarketplace.com/errors/rate-limit-exceeded", "title": "Rate Limit Exceeded",
		"status": 429.0,
		"detail": "You have exceeded the rate limit of 60 requests per minute", "retryAfter": 1.0,
	}, denied.body)
	w.pass(time.Hour)
}

// business checks the limits on deals and disputes: ten active deals, five deals of a channel a day, three disputes a
// week, and ten counter-offers.
func (m *marketplaceApp) business(w *marketplaceWeir) {
	create := func(user, channel string) (status int, id string) {
		a := m.post("/api/v1/deals", user, fmt.Sprintf(`{"channel":%q}`, channel))
		w.pass(time.Minute)
		id, _ = a.body["id"].(string)
		if a.status == http.StatusConflict {
			id, _ = a.body["constraint"].(string)
		}
		return a.status, id
	}
	var first string
	for i := range 10 {
		status, id := create("50", fmt.Sprint("c", i%2))
		require.Equal(m.t, http.StatusCreated, status)
		if i == 0 {
			first = id
		}
	}
	status, constraint := create("50", "c2")
	require.Equal(m.t, "409 MAX_ACTIVE_DEALS", fmt.Sprint(status, " ", constraint))
	require.Equal(m.t, http.StatusNoContent,
		m.do(marketplaceRequest{method: "DELETE", path: "/api/v1/deals/" + first, user: "50"}).status)
	status, constraint = create("50", "c0")
	require.Equal(m.t, "409 MAX_DEALS_PER_CHANNEL_PER_DAY", fmt.Sprint(status, " ", constraint),
		"and the place is free again")
	status, deal := create("50", "c2")
	require.Equal(m.t, http.StatusCreated, status)
	status, _ = create("51", "c1")
	require.Equal(m.t, http.StatusConflict, status, "the channel has had its five, whoever asks")
	w.pass(24 * time.Hour)
	status, _ = create("51", "c1")
	require.Equal(m.t, http.StatusCreated, status)
	w.says("1 0 0 -1 10 x", "RL.ACQUIRE deals:50 10 0 HOLDER x COST 0") // the ten slots never expire

	// A deal that fails behind the check gives its place and the channel's unit back.
	long := strings.Repeat("c", 65)
	failed := m.post("/api/v1/deals", "53", fmt.Sprintf(`{"channel":%q}`, long))
	require.Equal(m.t, http.StatusBadRequest, failed.status, failed.text)
	w.says("1 10 0 0 10 x", "RL.ACQUIRE deals:53 10 0 HOLDER x COST 0")
	w.says("1 5 0 0 5 channel-deals", "RL.CHECK channel-deals "+long+" COST 0")

	for i := range 4 {
		a := m.post("/api/v1/disputes", "52", `{"deal":"d"}`)
		require.Equal(m.t, map[bool]int{true: 201, false: 409}[i < 3], a.status)
		w.pass(time.Minute)
	}
	w.pass(7 * 24 * time.Hour)
	require.Equal(m.t, http.StatusCreated, m.post("/api/v1/disputes", "52", `{"deal":"d"}`).status)
	for i := range 11 {
		a := m.post("/api/v1/deals/"+deal+"/counter-offers", "50", "")
		require.Equal(m.t, map[bool]int{true: 201, false: 409}[i < 10], a.status)
		w.pass(time.Minute)
	}
}

// outbound checks that calls to the chain leave at ten a second, and messages of the bot at its three rates.
func (m *marketplaceApp) outbound(w *marketplaceWeir) {
	w.pass(time.Hour)
	var all sync.WaitGroup
	var longest atomic.Int64
	for i := range 11 { // weir's clock stands still, so the eleventh call is delayed for a second
		user := strconv.Itoa(60 + i)
		all.Go(func() {
			a := m.post("/api/v1/deals/5ab7f1a4-0f4e-4c0e-8a39-0f8bd1ac6f2e/deposit", user, "")
			if a.status != http.StatusOK {
				m.t.Errorf("%d %s", a.status, a.text)
			}
			for took := int64(a.took); ; {
				if before := longest.Load(); took <= before || longest.CompareAndSwap(before, took) {
					break
				}
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(m.t, time.Duration(longest.Load()), time.Second)

	send := func(chat string, from int, n int) {
		for i := range n {
			all.Go(func() {
				a := m.post("/api/v1/deals/d/messages", strconv.Itoa(from+i),
					fmt.Sprintf(`{"chat":%q,"text":"hello"}`, chat))
				if a.status != http.StatusNoContent {
					m.t.Errorf("%d %s", a.status, a.text)
				}
			})
		}
	}
	arrive := func(chat string, n int) {
		m.t.Helper()
		words := `"chat_id":"` + chat + `"`
		require.Eventually(m.t, func() bool { return m.bot.count(words) >= n }, weirproc.Wait, 10*time.Millisecond)
		require.Equal(m.t, n, m.bot.count(words))
	}
	send("7", 200, 2) // one a second to a chat
	arrive("7", 1)
	w.pass(time.Second)
	arrive("7", 2)
	all.Wait()
	w.pass(time.Minute)
	w.says("20 0 0 60000 20 bot-group", "RL.CHECK bot-group -9 COST 20 PARTIAL") // twenty a minute to a group
	send("-9", 210, 1)
	w.says("0 0 60000 60000 20 bot-group", "RL.CHECK bot-group -9")
	w.pass(time.Minute)
	arrive("-9", 1)
	all.Wait()
	w.pass(time.Minute)
	// Thirty a second to all, evenly. weir's clock stands still, so no message can be early because another is late.
	w.pass(time.Minute)
	begun := time.Now()
	for i := range 90 {
		send(fmt.Sprint(1000+i), 1000+i, 1)
	}
	all.Wait()
	for i, at := range m.bot.times(`"chat_id":"1`)[:90] {
		require.GreaterOrEqual(m.t, at.Sub(begun), time.Duration(i)*time.Second/30, "message %d", i)
	}
}

// bruteForce checks the delays, the CAPTCHA, the lock and the message to the user, also for concurrent attempts. The
// lock concerns the address of the attempts, and nobody else is locked out.
func (m *marketplaceApp) bruteForce(w *marketplaceWeir) {
	w.pass(time.Hour)
	const attacker, owner = "198.51.100.1", "198.51.100.99"
	captchas := 0
	for i := range 11 {
		a := m.login("77", attacker, false)
		require.Equal(m.t, http.StatusUnauthorized, a.status, "attempt %d: %s", i+1, a.text)
		switch {
		case i >= 5:
			require.GreaterOrEqual(m.t, a.took, 5*time.Second, "attempt %d", i+1)
		case i >= 3:
			require.GreaterOrEqual(m.t, a.took, 2*time.Second, "attempt %d", i+1)
		}
		if a.body["captchaRequired"] == true {
			captchas++
		}
		w.pass(time.Minute / 5) // the limit on logins by address
	}
	require.Equal(m.t, 6, captchas, "attempts 6 to 11")
	w.says("888", "TTL rl:auth:from:77:"+attacker)
	locked := m.login("77", attacker, true)
	require.Equal(m.t, http.StatusLocked, locked.status, "even with the right hash")
	require.Equal(m.t, "888", locked.header.Get("Retry-After"))
	w.says("strike", "TYPE rl:auth:fail:77")
	require.Eventually(m.t, func() bool { return m.bot.count(`"chat_id":"77"`) == 1 }, weirproc.Wait,
		10*time.Millisecond, "the user is told")
	require.Equal(m.t, "11 1", m.meter("ratelimit_auth_failures_total")+" "+m.meter("ratelimit_auth_lockouts_total"))
	require.Equal(m.t, http.StatusOK, m.login("77", owner, true).status, "from another address")
	w.pass(15 * time.Minute)
	require.Equal(m.t, http.StatusOK, m.login("77", attacker, true).status)
	w.says("none", "TYPE rl:auth:from:77:"+attacker)
	w.says("none", "TYPE rl:auth:fail:77")

	// After three mistakes the right password is accepted without a delay, and no failure stays counted.
	for range 2 {
		require.Equal(m.t, http.StatusUnauthorized, m.login("78", owner, false).status)
	}
	require.Equal(m.t, http.StatusOK, m.login("78", owner, true).status)
	w.says("1 11 0 0 11 lockout", "RL.CHECK lockout 78:"+owner+" COST 0")
	w.says("1 50 0 0 50 lockout-account", "RL.CHECK lockout-account 78 COST 0")

	w.pass(time.Minute)
	// Of sixty concurrent attempts from as many addresses fifty are tried. The owner has a token, and gets in.
	require.Equal(m.t, "50 10", m.guesses("79", 60))
	require.Equal(m.t, http.StatusLocked, m.login("79", owner, true).status, "a client without a token")
	known := m.loginRequest("79", owner, true)
	known.user = "79"
	require.Equal(m.t, http.StatusOK, m.do(known).status)
}

// guesses tries wrong passwords at once, each from an address of its own. It returns how many were tried and refused.
func (m *marketplaceApp) guesses(user string, n int) string {
	var all sync.WaitGroup
	var tried, refused atomic.Int64
	for i := range n {
		all.Go(func() {
			switch a := m.login(user, fmt.Sprintf("100.64.0.%d", i), false); a.status {
			case http.StatusUnauthorized:
				tried.Add(1)
			case http.StatusLocked:
				refused.Add(1)
			default:
				m.t.Errorf("%d %s", a.status, a.text)
			}
		})
	}
	all.Wait()
	return fmt.Sprint(tried.Load(), " ", refused.Load())
}

// blacklist checks that an address in the document's set is denied for every user, and in every form of the address.
func (m *marketplaceApp) blacklist(w *marketplaceWeir) {
	w.pass(time.Hour)
	from := func(address string) int {
		return m.do(marketplaceRequest{method: "GET", path: "/api/v1/channels", user: "90", address: address}).status
	}
	require.Equal(m.t, http.StatusOK, from("192.0.2.66"))
	w.says("1", "SADD rl:blacklist:ip 192.0.2.66")
	w.says("1", "SADD rl:blacklist:ip 2001:db8:0:7::1")
	w.says("1", "SISMEMBER rl:blacklist:ip 192.0.2.66")
	require.Equal(m.t, http.StatusForbidden, from("192.0.2.66"))
	require.Equal(m.t, http.StatusForbidden, from("2001:db8:0:7:ffff::2"), "another address of the same client")
	require.Equal(m.t, http.StatusOK, from("192.0.2.67"))
	w.says("0 0 -1 -1 30 channels", "RL.CHECK channels 90 FROM 192.0.2.66")
	w.says("0 0 -1 -1 5 auth", "RL.CHECK auth 192.0.2.66")
	w.says("1", "SREM rl:blacklist:ip 192.0.2.66")
	require.Equal(m.t, http.StatusOK, from("192.0.2.66"))
}

// monitoring checks the four metrics and their tags.
func (m *marketplaceApp) monitoring() {
	total := m.meter(`ratelimit_requests_total{endpoint="dispute",tier="dispute"}`)
	limited := m.meter(`ratelimit_requests_limited_total{endpoint="dispute",tier="dispute"}`)
	require.Equal(m.t, "10 2", total+" "+limited, "five by the first user, one of them twice, and five by the second")
	a := m.get("/actuator/metrics/ratelimit.requests.total", "")
	for _, words := range []string{`"ratelimit.requests.total"`, `"tier"`, `"api-write"`,
		`"endpoint"`, `"deals-write"`} {
		require.Contains(m.t, a.text, words)
	}
	require.Equal(m.t, http.StatusOK, m.get("/actuator/metrics/ratelimit.auth.lockouts", "").status)
}

// TestMarketplaceScript checks that the document's own Lua script, sent unchanged, keeps the same buckets.
func TestMarketplaceScript(t *testing.T) {
	text := script(t, marketplaceScript)
	rdb := startMarketplaceWeir(t).rdb
	take := func(nowMs int64) string { // deals, writing: burst 5, 20 a minute
		return marketplaceEval(t.Context(), rdb, text, "rl:deals:w:42", "5", "0.3333333333333333", nowMs, "1")
	}
	for left := 4; left >= 0; left-- {
		require.Equal(t, fmt.Sprintf("1 %d 0", left), take(1_700_000_000_000))
	}
	require.Equal(t, "0 0 3000", take(1_700_000_000_000))
	require.Equal(t, "1 0 0", take(1_700_000_003_000))
}

func marketplaceEval(ctx context.Context, rdb *redis.Client, text, key string, args ...any) string {
	answer, err := rdb.Eval(ctx, text, []string{key}, args...).Int64Slice()
	if err != nil {
		return err.Error()
	}
	return strings.Trim(fmt.Sprint(answer), "[]")
}

// TestMarketplaceEdge runs the document's nginx configuration, and an nginx that asks weir instead.
func TestMarketplaceEdge(t *testing.T) {
	need(t, "on Debian: apt install nginx-light", "nginx")
	app := startMarketplaceAPI(t)
	w := startMarketplaceWeir(t, "--http-check", "protected", "--policies", filepath.Join("marketplace", "edge.yaml"))
	for _, conf := range []string{"limit.conf", "weir.conf"} {
		t.Run(conf, func(t *testing.T) {
			dir, addr := t.TempDir(), marketplaceAddr(t)
			for name, replace := range map[string]*strings.Replacer{
				"main.conf":  strings.NewReplacer("include limit.conf", "include "+conf),
				"check.conf": strings.NewReplacer(),
				conf: strings.NewReplacer("127.0.0.1:8000", addr, "http://127.0.0.1:8080", app.url,
					"127.0.0.1:6381", w.HTTP),
			} {
				text, err := os.ReadFile(filepath.Join("marketplace/nginx", name))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(replace.Replace(string(text))), 0o644))
			}
			marketplaceRun(t, exec.Command("nginx", "-p", dir, "-e", "stderr", "-c", filepath.Join(dir, "main.conf")),
				addr)
			m := &marketplaceApp{t: t, addr: addr}
			passed, last := m.passes(12, marketplaceRequest{method: "POST", path: "/api/v1/auth/validate"})
			require.Contains(t, []int{4, 5}, passed,
				"one and a burst of three; a busy machine takes longer than the twelve seconds of the next")
			require.Equal(t, http.StatusTooManyRequests, last.status)
			begun := time.Now()
			passed, _ = m.passes(200, marketplaceRequest{method: "GET", path: "/api/v1/deals"})
			more := 0
			if conf == "limit.conf" { // the limit of nginx refills in real time
				more = int(time.Since(begun)/(time.Second/30)) + 1
			}
			require.GreaterOrEqual(t, passed, 51)
			require.LessOrEqual(t, passed, 51+more)
			if conf == "weir.conf" {
				require.Equal(t, "12", last.header.Get("Retry-After"))
				w.pass(time.Hour)
				w.says("1", "SADD rl:blacklist:ip 127.0.0.1")
				require.Equal(t, http.StatusTooManyRequests, m.get("/api/v1/deals", "").status)
				w.says("1", "SREM rl:blacklist:ip 127.0.0.1")
				require.Equal(t, http.StatusOK, m.get("/api/v1/deals", "").status)
			}
		})
	}
}

// TestMarketplaceAlerts checks that the document's three alerts fire above its thresholds.
func TestMarketplaceAlerts(t *testing.T) {
	need(t, "on Debian: apt install prometheus", "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), "promtool", args...)
		cmd.Dir = "marketplace"
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}
