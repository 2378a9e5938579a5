package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

// browser is a real Chromium that opens the page.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	errors   []string // console errors and exceptions
	requests []string // every address that the browser requested
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: chromium is missing (on Debian: apt install chromium)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1100, 1300), chromedp.Flag("no-sandbox", os.Getuid() == 0),
		chromedp.Flag("disable-component-update", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx}
	require.NoError(t, chromedp.Listen(ctx, b.heard))
	return b
}

func (b *browser) heard(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors,
			fmt.Sprint(e.ExceptionDetails.Text, e.ExceptionDetails.URL, e.ExceptionDetails.LineNumber))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.errors = append(b.errors, fmt.Sprint(e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.errors = append(b.errors, e.Entry.Text)
		}
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, steps...))
}

func (b *browser) eval(js string) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[string]("String("+js+")"))
	require.NoError(b.t, err, js)
	return value
}

func (b *browser) text(id string) string {
	return b.eval("document.getElementById('" + id + "').textContent.replace(/\\s+/g, ' ').trim()")
}

// awaitText waits until an element has the wanted text.
func (b *browser) awaitText(id, want string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool { return strings.Contains(b.text(id), want) }, patience, 100*time.Millisecond,
		"#%s must show %q", id, want)
}

// keep writes a picture to the directory of "go test -artifacts".
func (b *browser) keep(name string) {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(b.t.ArtifactDir(), name), picture, 0o600))
}

func (p *process) infoField(name string) string {
	p.t.Helper()
	info, err := redis.String(p.do("INFO", "everything"), nil)
	require.NoError(p.t, err)
	found := regexp.MustCompile(`(?m)^` + name + `:(.*?)\r?$`).FindStringSubmatch(info)
	require.NotNil(p.t, found, name)
	return found[1]
}

// TestPage checks that the page shows the same figures as INFO. The page must request nothing from other servers, and
// must not interpret text of clients.
func TestPage(t *testing.T) {
	b := openBrowser(t)
	p := start(t, "--max-memory=64mb")
	c := p.dial()
	hostile := `<img src=x onerror="document.title='owned'">`
	take := func(key string) {
		_, err := c.Do("RL.CHECK", "login", key)
		require.NoError(t, err)
	}
	_, err := c.Do("RL.POLICY", "SET", "login", "LIMIT", "FIXED", "1d", "2", "FIRST")
	require.NoError(t, err)
	for range 5 {
		take("user:42")
	}
	b.do(chromedp.Navigate(p.web + "/"))
	b.awaitText("state", "up ")
	for range 3 { // the page watches from here on, and the third check is denied
		take(hostile)
	}
	b.awaitText("denials", hostile+"login")
	b.awaitText("allowed-rate", "0")

	require.Equal(t, p.infoField("decisions_allowed"), b.text("allowed"))
	require.Equal(t, p.infoField("decisions_denied"), b.text("denied"))
	require.Equal(t, "4 4", b.text("allowed")+" "+b.text("denied"))
	require.Equal(t, p.infoField("db0"), "keys="+b.text("keys")+",expires="+b.text("keys")+",avg_ttl=0")
	require.Regexp(t, `^of 64\.0 MB, 0\.\d %$`, b.text("memory-max"))
	require.Equal(t, "64.00M", p.infoField("maxmemory_human"))
	require.Regexp(t, `^[\d.]+ (µs|ms|s)$`, b.text("p99"))
	require.Contains(t, b.text("policies"), "login")
	require.Equal(t, "true", b.eval("document.getElementById('cluster').hidden"),
		"a single node must not show the cluster")

	b.do(chromedp.KeyEvent("/"))
	require.Equal(t, "key", b.eval("document.activeElement.id"))
	// DevTools also types the character of a key that the page handles. A keyboard does not.
	b.do(chromedp.KeyEvent(kb.Backspace), chromedp.KeyEvent("user:42"), chromedp.KeyEvent(kb.Enter))
	b.awaitText("found", "policy|login|0|user:42")
	require.Contains(t, b.text("found"), "used2 of 2, 0 left")
	require.Equal(t, "0 weir", b.eval("document.images.length + ' ' + document.title"))
	b.keep("page-light.png")

	light := b.eval("getComputedStyle(document.body).backgroundColor")
	_, err = chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}})
	require.NoError(t, err)
	require.NotEqual(t, light, b.eval("getComputedStyle(document.body).backgroundColor"))
	b.keep("page-dark.png")
	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile))
	require.Equal(t, "true", b.eval("document.documentElement.scrollWidth <= 390"),
		"the page must fit a phone without sideways scrolling")
	b.keep("page-phone.png")

	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.errors)
	require.NotEmpty(t, b.requests)
	for _, url := range b.requests {
		require.Regexp(t, "^("+regexp.QuoteMeta(p.web)+"/|data:,)", url)
	}
}
