package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

// fill replaces the content of a field of the page.
func (b *browser) fill(id, text string) {
	b.t.Helper()
	b.eval("(document.getElementById('" + id + "').value = '', document.getElementById('" + id + "').focus())")
	b.do(chromedp.KeyEvent(text))
}

func (b *browser) press(value string) {
	b.t.Helper()
	b.eval(`document.querySelector('button[value="` + value + `"]').click()`)
}

// TestPageActs checks the actions of a logged-in user on the page: reset, block, unblock and explain a key. The
// server must decide accordingly, and its log must name the user.
func TestPageActs(t *testing.T) {
	b := openBrowser(t)
	password := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(password, []byte("sesame"), 0o600))
	p := start(t, "--requirepass-file", password)
	c := p.dial(redis.DialPassword("sesame"))
	check := func() int64 {
		reply, err := redis.Values(c.Do("RL.CHECK", "login", "user:42"))
		require.NoError(t, err)
		return reply[0].(int64)
	}
	_, err := c.Do("RL.POLICY", "SET", "login", "LIMIT", "FIXED", "1d", "1", "FIRST")
	require.NoError(t, err)
	require.EqualValues(t, 1, check())
	for range 64 { // the count of denials halves at the end of each minute
		require.EqualValues(t, 0, check())
	}

	b.do(chromedp.Navigate(strings.Replace(p.web, "http://", "http://default:sesame@", 1) + "/"))
	b.do(chromedp.Navigate(p.web + "/")) // the browser now knows the password, so scripts may fetch
	b.awaitText("state", "up ")
	b.awaitText("top-denied", "user:42 (login)")
	b.fill("key", "user:42"+kb.Enter)
	b.awaitText("found", "policy|login|0|user:42")

	b.press("reset")
	b.awaitText("done", "user:42 is reset")
	b.awaitText("found", "user:42 is idle")
	require.EqualValues(t, 1, check())

	b.fill("block-why", "abuse")
	b.press("block")
	b.awaitText("done", "user:42 is blocked")
	b.awaitText("found", "blockedfor 60 min: abuse")
	b.press("reset")
	b.awaitText("done", "its block stays")
	require.EqualValues(t, 0, check(), "the block must stay")
	b.awaitText("denials", "user:42RL.BLOCK (blocked)")
	require.Contains(t, b.text("policies"), "loginFIXED 1d 1 FIRST")
	require.Contains(t, b.text("version"), strings.TrimPrefix(p.web, "http://"),
		"the page must say which server it shows")

	b.press("unblock")
	b.awaitText("done", "is unblocked")
	require.EqualValues(t, 1, check())

	b.fill("decision", "RL.CHECK login user:42"+kb.Enter)
	b.awaitText("why", "why")
	require.Contains(t, b.text("why"), "allowed0")
	b.fill("decision", "PING"+kb.Enter)
	b.awaitText("why", "must be a decision")
	b.keep("page-act.png")

	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	require.Equal(t, "true", b.eval(`[...document.querySelectorAll("td")].every((td) => td.getBoundingClientRect().right <= 390)`),
		"no column may be out of sight on a phone")
	b.keep("page-act-phone.png")

	log := p.Log()
	for _, command := range []string{"rl.reset", "rl.block", "rl.unblock"} {
		require.Contains(t, log, `"command":"`+command+`"`)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.errors)
}

// TestPageOfADeadServer checks that the figures of a server that does not answer are not shown as current.
func TestPageOfADeadServer(t *testing.T) {
	b := openBrowser(t)
	p := start(t)
	b.do(chromedp.Navigate(p.web + "/"))
	b.awaitText("state", "up ")
	require.Equal(t, "none", b.eval("getComputedStyle(document.querySelector('main')).filter"))
	p.Kill()
	b.awaitText("state", "no answer, the figures are old")
	require.Equal(t, "grayscale(1)", b.eval("getComputedStyle(document.querySelector('main')).filter"))
}
