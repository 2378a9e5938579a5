package examples

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/logtest"
	"github.com/weir-project/weir/internal/weirproc"
	"github.com/weir-project/weir/internal/weirtest"
)

// promptTokens are the tokens that the provider of the tests bills for a prompt.
const promptTokens = 7

// provider speaks the OpenAI protocol. The last message of a request says what it does: "words 40" answers 40 words of
// one token each. "unbilled" reports no usage, "fails" fails always, and "falters" at the first attempt.
type provider struct {
	sent   atomic.Int64 // words
	billed atomic.Int64 // tokens whose usage was reported
	tries  atomic.Int64 // of requests that falter
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Stream   bool
		Messages []struct{ Content string }
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	order, words := asked.Messages[len(asked.Messages)-1].Content, 1
	_, _ = fmt.Sscanf(order, "words %d", &words)
	if strings.Contains(order, "fails") || strings.Contains(order, "falters") && p.tries.Add(1) == 1 {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	usage := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`,
		promptTokens, words, promptTokens+words)
	if !asked.Stream {
		p.sent.Add(int64(words))
		p.billed.Add(int64(promptTokens + words))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,`+
			`"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],%s}`, usage)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(choices, more string) {
		fmt.Fprintf(w, `data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[%s]%s}`+"\n\n",
			choices, more)
		w.(http.Flusher).Flush()
	}
	for i := range words {
		if r.Context().Err() != nil {
			return
		}
		p.sent.Add(1)
		say(fmt.Sprintf(`{"index":0,"delta":{"content":"%03d "}}`, i%1000), "")
	}
	say(`{"index":0,"delta":{},"finish_reason":"stop"}`, "")
	if !strings.Contains(order, "unbilled") {
		p.billed.Add(int64(promptTokens + words))
		say("", ","+usage)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// gateway is a LiteLLM with the example's budget, in front of a provider.
type gateway struct {
	t    *testing.T
	weir *weirtest.Server // or nil
	provider
	addr string
	cmd  *exec.Cmd
}

const gatewayKey = "sk-0123456789abcdef0123456789abcdef"

// installed returns a directory with the example and what it needs.
func installed(t *testing.T) string {
	needExamples(t)
	need(t, "on Debian: apt install python3-venv", "python3")
	page, dir := readmeOf(t, "litellm"), copied(t, "litellm", nil)
	for _, step := range page.start[:len(page.start)-1] {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", step)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil && os.Getenv("CI") == "" {
			t.Skipf("SKIPPED: litellm cannot be installed: %q: %v\n%s", step, err, out)
		}
		require.NoError(t, err, "%q: %s", step, out)
	}
	return dir
}

// startGateway starts an installed example that asks the nodes of a weir.
func startGateway(t *testing.T, dir string, nodes ...string) *gateway {
	g := &gateway{t: t, addr: freeport.Addr(t)}
	upstream := httptest.NewServer(&g.provider)
	t.Cleanup(upstream.Close)
	steps := readmeOf(t, "litellm").start
	host, port, _ := strings.Cut(g.addr, ":")
	start := strings.NewReplacer("127.0.0.1", host, "8080", port).Replace(steps[len(steps)-1])
	g.cmd = exec.CommandContext(t.Context(), "sh", "-c", "exec "+start)
	g.cmd.Dir = dir
	g.cmd.Env = append(os.Environ(), "WEIR="+strings.Join(nodes, ","), "PROVIDER="+upstream.URL+"/v1",
		"PROVIDER_KEY=none", "PYTHONPATH="+dir, "STEP=50", "TTL=60")
	run(t, g.cmd, g.addr)
	return g
}

// budget gives the callers together this many tokens, and forgets what was used.
func (g *gateway) budget(tokens int64) {
	g.do("RL.POLICY", "SET", "llm", "LIMIT", "FIXED", "FOREVER", tokens)
	g.do("RL.RESET", used)
}

// used is the limiter of the policy for the key of the proxy.
const used = "policy|llm|0|key:litellm_proxy_master_key"

func (g *gateway) do(args ...any) any {
	answer, err := g.weir.Redis().Do(g.t.Context(), args...).Result()
	require.NoError(g.t, err, "%v", args)
	return answer
}

// left returns how many tokens of the budget are left. A dry run takes nothing.
func (g *gateway) left() int64 {
	return g.do("RL.CHECK", "llm", "key:litellm_proxy_master_key", "COST", 0).([]any)[1].(int64)
}

// ask sends a request and returns the answer once its header has come.
func (g *gateway) ask(order string, stream bool) (*http.Response, error) {
	body := fmt.Sprintf(`{"model":"chat","stream":%v,"messages":[{"role":"user","content":%q}]}`, stream, order)
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, "http://"+g.addr+"/v1/chat/completions",
		strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+gatewayKey)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Litellm-Call-Id", "always-the-same") // LiteLLM believes it
	return http.DefaultClient.Do(req)
}

// call sends a request and returns what the client reads.
func (g *gateway) call(order string, stream bool) (status int, body string) {
	res, err := g.ask(order, stream)
	if !assert.NoError(g.t, err) {
		return 0, ""
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	assert.NoError(g.t, err)
	return res.StatusCode, string(all)
}

// settled waits until as many tokens are left as expected: LiteLLM reports usage after its answer.
func (g *gateway) settled(left int64, why string) {
	g.t.Helper()
	require.Eventually(g.t, func() bool { return g.left() == left }, weirtest.Wait, 20*time.Millisecond,
		"%s: want %d left", why, left)
}

// TestLiteLLM runs the example behind LiteLLM as it is published.
func TestLiteLLM(t *testing.T) {
	dir := installed(t)
	t.Setenv("LITELLM_MASTER_KEY", gatewayKey)
	t.Run("one node", func(t *testing.T) { oneNode(t, dir) })
	t.Run("failovers", func(t *testing.T) { failovers(t, dir) })
	t.Run("holds that weir does not know", func(t *testing.T) { unknownHolds(t, dir) })
}

func oneNode(t *testing.T, dir string) {
	weir := weirtest.Start(t)
	g := startGateway(t, dir, weir.Addr)
	g.weir = weir
	g.budget(1000)
	for _, stream := range []bool{false, true} {
		before := g.left()
		for range 2 { // with one call id
			status, body := g.call("words 40", stream)
			require.Equal(t, http.StatusOK, status, body)
		}
		g.settled(before-2*(promptTokens+40), "what the provider billed")
	}

	before := g.left()
	status, body := g.call("falters words 10", false)
	require.Equal(t, http.StatusOK, status, body)
	g.settled(before-promptTokens-1, "a retry pays once")
	status, _ = g.call("fails", false)
	require.Equal(t, http.StatusInternalServerError, status)
	g.settled(before-promptTokens-1, "a call that fails pays nothing")

	g.budget(1000)
	status, body = g.call("words 40 unbilled", true)
	require.Equal(t, http.StatusOK, status, body)
	require.Eventually(t, func() bool {
		left := g.left()
		return left < 1000-40 && left > 1000-promptTokens-50-40
	}, weirtest.Wait,
		20*time.Millisecond, "LiteLLM counts the tokens of an answer without usage")

	g.budget(300)
	before = g.sent.Load()
	status, body = g.call("words 100000", true)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"code": "429"`, "the stream ends with the reason")
	require.Less(t, g.sent.Load()-before, int64(100000), "the provider is told to stop")
	require.LessOrEqual(t, g.left(), int64(0))
	status, body = g.call("words 1", false)
	require.Equal(t, http.StatusTooManyRequests, status, body)

	page := readmeOf(t, "litellm")
	g.do("RL.POLICY", "DEL", "llm")
	page.follow(t, g.weir, g.addr)

	const budget = 1_000_000
	g.budget(budget)
	stream := make(chan string, 1)
	go func() {
		_, body := g.call("words 100000", true)
		stream <- body
	}()
	require.Eventually(t, func() bool { return g.left() < budget }, weirtest.Wait, time.Millisecond)
	g.weir.Stop()
	status, body = g.call("words 1", false)
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	require.Contains(t, <-stream, `"code": "503"`, "the stream ends with the reason")
	g.weir.Start()
	g.share()
}

// share checks that many calls at once keep a budget, and that the holds of a killed proxy count as used.
func (g *gateway) share() {
	t := g.t
	const budget, callers, words = 2000, 8, 2000 // no stream ends before the budget is spent
	g.budget(budget)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() { g.call(fmt.Sprint("words ", words), true) })
	}
	all.Wait()
	require.Eventually(t, func() bool { return g.left() <= 0 }, weirtest.Wait, 20*time.Millisecond)
	require.GreaterOrEqual(t, g.left(), int64(-callers*2), "each stream exceeds the budget by its last piece at most")

	g.budget(budget)
	all.Go(func() {
		if res, err := g.ask("words 100000", true); err == nil {
			drain(res)
		}
	})
	require.Eventually(t, func() bool { return g.left() < budget }, weirtest.Wait, time.Millisecond)
	require.NoError(t, syscall.Kill(-g.cmd.Process.Pid, syscall.SIGKILL))
	all.Wait()
	left := g.left()
	require.Less(t, left, int64(budget))
	g.weir.Advance(time.Hour)
	require.Equal(t, left, g.left(), "what the proxy held counts as used")
}

// failovers kills the leader of three nodes while calls run. No call fails, and the bill is what the provider billed.
func failovers(t *testing.T, dir string) {
	const limit, callers, calls, words = 10_000, 4, 6, 380
	cluster, page := weirproc.StartCluster(t), readmeOf(t, "litellm")
	policy := strings.Replace(page.steps[0].commands[0], "MONTH 1000 TZ UTC", fmt.Sprint("FOREVER ", limit), 1)
	require.Eventually(t, func() bool {
		return cluster.Leader().Redis().Do(t.Context(), redisArgs(policy)...).Err() == nil
	}, weirproc.Wait, 10*time.Millisecond)
	bill := follow(t, page, cluster.Nodes[0])
	g := startGateway(t, dir, cluster.Addrs()...)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				status, body := g.call(fmt.Sprint("words ", words), true)
				assert.Equal(t, http.StatusOK, status, body)
				assert.NotContains(t, body, `"error"`, "no stream ends because of a failover")
				assert.Contains(t, body, "[DONE]")
			}
		})
	}
	for kill := range int64(3) { // after a fourth, a half and three fourths of all words
		due := callers * calls * words * (kill + 1) / 4
		require.Eventually(t, func() bool { return g.sent.Load() >= due }, 3*weirproc.Wait, time.Millisecond)
		cluster.KillLeader().Start()
	}
	all.Wait()

	require.EqualValues(t, callers*calls*(promptTokens+words), g.billed.Load())
	require.Eventually(t, func() bool { return bill.count("settled") == callers*calls }, 2*weirproc.Wait,
		10*time.Millisecond, "each call is on the bill")
	require.Zero(t, bill.count("expired"), "no call pays its whole hold")
	require.Equal(t, g.billed.Load(), bill.tokens())
	require.Equal(t, 1, bill.count("threshold"), "one alert")
	require.Eventually(t, func() bool {
		answer, err := cluster.Leader().Redis().Do(t.Context(), "RL.CHECK", "llm", "key:litellm_proxy_master_key",
			"COST", 0).Slice()
		return err == nil && answer[1] == limit-g.billed.Load()
	}, weirproc.Wait, 10*time.Millisecond, "the limit counts what is billed")
}

// bill is what the webhook of the README gets.
type bill struct {
	mu     sync.Mutex
	events map[string]billed // by the id of the event: an event may be delivered twice
}

type billed struct {
	Kind   string
	Amount int64
}

func (b *bill) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var e billed
	if json.NewDecoder(r.Body).Decode(&e) == nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.events[r.Header.Get("Weir-Event-Id")] = e
	}
}

func (b *bill) count(kind string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// tokens returns how many tokens all calls together pay.
func (b *bill) tokens() (sum int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.Kind != "threshold" {
			sum += e.Amount
		}
	}
	return sum
}

// follow runs the README's weir events at a node until the test ends.
func follow(t *testing.T, page *readme, node *weirproc.Server) *bill {
	b := &bill{events: map[string]billed{}}
	hook := httptest.NewServer(b)
	t.Cleanup(hook.Close)
	require.NotEmpty(t, page.events)
	words := strings.NewReplacer("/var/lib/weir-llm/cursor", filepath.Join(t.TempDir(), "cursor"),
		"https://hooks.example.org/weir", hook.URL).Replace(strings.TrimPrefix(page.events, "weir "))
	cmd := weirproc.Command(append(strings.Fields(words), "--addr", node.Addr)...)
	log := new(logtest.Buffer)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("weir events said:\n%s", log.String())
		}
	})
	return b
}

// unknownHolds commits 90 tokens of a hold of 57 that weir does not know any more, because it has ended, or because weir
// forgot it. The limit counts 90 tokens in both cases.
func unknownHolds(t *testing.T, dir string) {
	const program = `
import asyncio, budget
async def main():
    hold = budget.Hold("a", 7)
    await hold.reserve(57)
    input()
    await hold.commit(90)
asyncio.run(main())
`
	weir := weirproc.Start(t, "--id-lifetime", "1ms")
	rdb := weir.Redis()
	require.NoError(t, rdb.Do(
		t.Context(), "RL.POLICY", "SET", "llm", "LIMIT", "FIXED", "FOREVER", 1000, "RECORD").Err())
	left := func() int64 {
		answer, err := rdb.Do(t.Context(), "RL.CHECK", "llm", "a", "COST", 0).Slice()
		require.NoError(t, err)
		return answer[1].(int64)
	}
	for _, lost := range []struct {
		ttl string
		by  func()
	}{
		{"1", func() { // its end, which an event reports
			require.Eventually(t, func() bool {
				events, err := rdb.Do(t.Context(), "RL.EVENTS").Slice()
				return err == nil && len(events) == 1
			}, weirproc.Wait, 10*time.Millisecond)
		}},
		{"600", func() { require.NoError(t, rdb.FlushAll(t.Context()).Err()) }},
	} {
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
		cmd := exec.CommandContext(t.Context(), "venv/bin/python", "-c", program)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "WEIR="+weir.Addr, "TTL="+lost.ttl)
		var failed bytes.Buffer
		cmd.Stderr = &failed
		enter, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return left() == 1000-57 }, startWait, time.Millisecond)
		lost.by()
		_, err = fmt.Fprintln(enter)
		require.NoError(t, err)
		require.NoError(t, cmd.Wait(), "%s", &failed)
		require.EqualValues(t, 1000-90, left(), "after a hold of %s seconds", lost.ttl)
	}
}
