package browser

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/weirproc"
)

// screenshotLoad is how long a server is loaded before the picture. The chart shows this time.
const screenshotLoad = 10 * time.Minute

// TestScreenshots takes pictures of the page under load, so that a developer can look at them after a change.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("WEIRTEST_SCREENSHOTS")
	if dir == "" {
		t.Skip("SKIPPED: pictures are taken with WEIRTEST_SCREENSHOTS=DIR")
	}
	t.Run("one node", func(t *testing.T) {
		t.Parallel()
		p := start(t, "--max-memory=64mb")
		shop(t, p)
		awaitUptime(t, p, screenshotLoad)
		b := openBrowser(t)
		b.watch(p)
		b.shoot(dir, "page")
		b.dark()
		b.shoot(dir, "page-dark")
		shown, err := weirproc.Command("top", "--once", "--http", p.HTTP).Output()
		require.NoError(t, err)
		top := filepath.Join(dir, "top.txt")
		require.NoError(t, os.WriteFile(
			top, shown, 0o644))
	})
	t.Run("three nodes", func(t *testing.T) {
		t.Parallel()
		nodes := startCluster(t)
		shop(t, nodes[0])
		b := openBrowser(t)
		for i, p := range nodes {
			b.watch(p)
			b.shoot(dir, fmt.Sprintf("node-%d", i))
		}
		b.do(chromedp.EmulateViewport(375, 812, chromedp.EmulateMobile))
		b.watch(nodes[0])
		b.shoot(dir, "narrow")
		nodes[2].Kill()
		b.awaitText("nodes", "no")
		b.shoot(dir, "narrow-node-down")
	})
}

// watch opens the page of a server and waits until it shows rates.
func (b *browser) watch(p *process) {
	b.t.Helper()
	b.do(chromedp.Navigate(p.web + "/"))
	b.awaitText("state", "up ")
	require.Eventually(b.t, func() bool { return b.eval("seen.length > window_") == "true" },
		patience, 100*time.Millisecond)
}

// awaitUptime waits until a server has run for this long.
func awaitUptime(t *testing.T, p *process, long time.Duration) {
	c := p.dial()
	uptime := regexp.MustCompile(`uptime_in_seconds:(\d+)`)
	require.Eventually(t, func() bool {
		info, err := redis.String(c.Do("INFO", "server"))
		require.NoError(t, err)
		up, err := time.ParseDuration(uptime.FindStringSubmatch(info)[1] + "s")
		return err == nil && up >= long
	}, long+patience, time.Second)
}

func (b *browser) shoot(dir, name string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644))
}

// dark makes the browser prefer dark colours.
func (b *browser) dark() {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	require.NoError(b.t, err)
}

// shop sends the requests of a web shop to a server until the test ends.
func shop(t *testing.T, p *process) {
	set(t, p, "api LIMIT TOKENBUCKET 40/s 80", "search LIMIT SLIDING 10s 60", "login LIMIT FIXED 1m 5",
		"checkout LIMIT TOKENBUCKET 5/s 10", "export LIMIT FIXED 1h 3", "mail LIMIT LEAKYBUCKET 5/s 20")
	traffic(t, p, func(seconds float64, send func(policy, key string)) {
		wave := 1 + .5*math.Sin(seconds/9) + .2*math.Sin(seconds/2.3)
		for range int(12 * wave) {
			send("api", fmt.Sprintf("user:%d", 1000+int(rand.ExpFloat64()*40)))
		}
		for range int(3 * wave) {
			send("search", fmt.Sprintf("user:%d", 1000+int(rand.ExpFloat64()*60)))
		}
		if math.Mod(seconds, 40) > 28 { // a client guesses passwords
			for range 4 {
				send("login", "ip:203.0.113.66")
			}
		}
		if rand.IntN(2) == 0 {
			send("login", fmt.Sprintf("ip:198.51.100.%d", rand.IntN(250)))
			send("checkout", fmt.Sprintf("user:%d", 1000+rand.IntN(300)))
		}
		for range 4 {
			send("api", "org:acme")
		}
		if rand.IntN(20) == 0 {
			send("export", "org:acme")
			send("mail", "org:acme")
		}
	})
}

func set(t *testing.T, p *process, policies ...string) {
	c := p.dial()
	for _, terms := range policies {
		args := []any{"SET"}
		for _, word := range strings.Fields(terms) {
			args = append(args, word)
		}
		_, err := c.Do("RL.POLICY", args...)
		require.NoError(t, err, terms)
	}
}

// traffic has step send checks twenty times a second, until the test ends.
func traffic(t *testing.T, p *process, step func(seconds float64, send func(policy, key string))) {
	c, err := redis.Dial("tcp", p.Addr)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = c.Close()
	})
	go func() {
		defer close(ended)
		began, ticks := time.Now(), time.NewTicker(50*time.Millisecond)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			step(time.Since(began).Seconds(), func(policy, key string) { _ = c.Send("RL.CHECK", policy, key) })
			if _, err := c.Do(""); err != nil && ctx.Err() == nil { // the server was stopped, and the test continues
				return
			}
		}
	}()
}
