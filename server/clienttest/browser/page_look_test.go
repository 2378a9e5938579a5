package browser

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/httpapi"
)

// TestPageBeginsWithTheHistory checks that the charts of a newly opened page show the time before it was opened.
func TestPageBeginsWithTheHistory(t *testing.T) {
	b := openBrowser(t)
	p := start(t)
	history := func() (past []httpapi.Sample) {
		reply, err := http.Get(p.web + "/history.json")
		require.NoError(t, err)
		defer reply.Body.Close()
		require.NoError(t, json.NewDecoder(reply.Body).Decode(&past))
		return past
	}
	require.Eventually(t, func() bool { return len(history()) > 0 }, patience, time.Millisecond,
		"the first sample must come before the requests")
	for range 3 {
		p.do("RL.FIXED", "k", "1m", "2", "FIRST")
	}
	require.Eventually(t, func() bool {
		past := history()
		return len(past) > 1 && past[len(past)-1].Limited == 1
	}, patience, 100*time.Millisecond)
	b.do(chromedp.Navigate(p.web + "/"))
	b.awaitText("state", "up ")
	require.Equal(t, "true", b.eval("past.length > 2 && past[0].allowed < past[past.length - 1].allowed"))
	require.Regexp(t, `^M.* .*L`, b.eval("document.getElementById('chart-denied').getAttribute('d')"))
	require.Equal(t, "1 0.5", b.text("chart-top")+" "+b.text("chart-half"),
		"the axis must end at the next round number")
	require.Equal(t, "1 2 5 10 500 1000", b.eval("[1, 1.1, 5, 5.1, 499, 501].map(nice).join(' ')"))
	require.Equal(t, "3 s, 1 min 40 s, 2 h 5 min, 3 d 0 h", b.eval("[3, 100, 7500, 259200].map(span).join(', ')"))
}

// TestPageFoldsDenials checks that all denials of a key by one policy share one line.
func TestPageFoldsDenials(t *testing.T) {
	b := openBrowser(t)
	p := start(t)
	p.do("RL.POLICY", "SET", "login", "LIMIT", "FIXED", "1d", "1", "FIRST")
	b.do(chromedp.Navigate(p.web + "/"))
	b.awaitText("state", "up ")
	for _, key := range []string{"a", "a", "b", "a", "a", "b"} {
		p.do("RL.CHECK", "login", key)
	}
	b.awaitText("denials", "blogin1")
	b.awaitText("denials", "alogin3")
	require.Equal(t, "2", b.eval("document.querySelectorAll('#denials tr').length"))
}

// TestPageShowsBudgets checks the newest events, and what is used of a budget with holds.
func TestPageShowsBudgets(t *testing.T) {
	b := openBrowser(t)
	p := start(t)
	p.do("RL.POLICY", "SET", "budget", "LIMIT", "FIXED", "FOREVER", "1000", "NOTIFY", "80%", "RECORD")
	p.do("RL.RESERVE", "budget", "acme", "850", "1m", "ID", "h")
	b.do(chromedp.Navigate(p.web + "/"))
	b.awaitText("top-admitted", "acme (budget): 850 of 1,000 used, open holds: 1")
	b.awaitText("events", "threshold 80 %budgetacme850850 of 1,000")
	p.do("RL.COMMIT", "h", "700")
	b.awaitText("events", "settledbudgetacme700700 of 1,000")
	require.Equal(t, "2", b.eval("document.querySelectorAll('#events tr').length"))
}

// TestPageExplainsTerms checks that explanations of terms open by pointer, keyboard and touch.
func TestPageExplainsTerms(t *testing.T) {
	b := openBrowser(t)
	p := start(t)
	b.do(chromedp.Navigate(p.web+"/"), chromedp.EmulateViewport(375, 812, chromedp.EmulateMobile))
	_, err := chromedp.Call(b.ctx, emulation.SetFocusEmulationEnabled,
		emulation.SetFocusEmulationEnabledParams{Enabled: true})
	require.NoError(t, err)
	b.awaitText("state", "up ")
	shown := func() string {
		return b.eval("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent")
	}
	require.Empty(t, shown())
	b.eval("document.querySelectorAll('.term')[1].focus()")
	require.Contains(t, shown(), "because memory was full")
	require.Equal(t, "true", b.eval("document.getElementById('tip').getBoundingClientRect().right <= innerWidth"))
	b.do(chromedp.KeyEvent(kb.Escape))
	require.Empty(t, shown())
	b.eval("document.querySelectorAll('.term')[4].click()")
	require.Contains(t, shown(), "behind the wall clock")
	require.Equal(t, "true", b.eval("document.documentElement.scrollWidth <= 375"))
}

// TestPageOfAFollower checks that a follower's page links to the leader's page, and says which node's requests it
// shows.
func TestPageOfAFollower(t *testing.T) {
	b := openBrowser(t)
	nodes := startCluster(t)
	b.do(chromedp.Navigate(nodes[1].web + "/"))
	b.awaitText("leader-page", "page of the leader ")
	require.Equal(t, nodes[0].web, b.eval("document.querySelector('#leader-page a').getAttribute('href')"))
	require.Contains(t, b.text("whose"), "this node")
	b.do(chromedp.Navigate(nodes[0].web + "/"))
	b.awaitText("state", "up ")
	require.Empty(t, b.text("leader-page"))
	for _, url := range []string{"", "javascript:alert(1)"} {
		b.eval(fmt.Sprintf("leaderPages({self: 'y', nodes: [{id: 'x', role: 'leads 1 of 1', web_url: %q}]})", url))
		require.Equal(t, "x leads. Its page is off, or open to its own machine only.", b.text("leader-page"))
	}
}
