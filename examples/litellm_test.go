package examples

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/weirtest"
)

// promptTokens are the tokens that the provider of the tests bills for a prompt.
const promptTokens = 7

// provider speaks the OpenAI protocol. The last message of a request says what it does: "words 40" answers 40 words of
// one token each. "unbilled" reports no usage, "fails" fails always, and "falters" at the first attempt.
type provider struct {
	sent  atomic.Int64 // words
	tries atomic.Int64 // of requests that falter
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
		say("", ","+usage)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// gateway is a LiteLLM with the example's budget, in front of a provider.
type gateway struct {
	t    *testing.T
	weir *weirtest.Server
	provider
	addr string
	cmd  *exec.Cmd
}

const gatewayKey = "sk-0123456789abcdef0123456789abcdef"

func startGateway(t *testing.T) *gateway {
	needExamples(t)
	need(t, "on Debian: apt install python3-venv", "python3")
	g := &gateway{t: t, weir: weirtest.Start(t), addr: freeport.Addr(t)}
	upstream := httptest.NewServer(&g.provider)
	t.Cleanup(upstream.Close)
	page, dir := readmeOf(t, "litellm"), copied(t, "litellm", nil)
	last := len(page.start) - 1
	for _, step := range page.start[:last] {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", step)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil && os.Getenv("CI") == "" {
			t.Skipf("SKIPPED: litellm cannot be installed: %q: %v\n%s", step, err, out)
		}
		require.NoError(t, err, "%q: %s", step, out)
	}
	t.Setenv("LITELLM_MASTER_KEY", gatewayKey)
	host, port, _ := strings.Cut(g.addr, ":")
	start := strings.NewReplacer("127.0.0.1", host, "8080", port).Replace(page.start[last])
	g.cmd = exec.CommandContext(t.Context(), "sh", "-c", "exec "+start)
	g.cmd.Dir = dir
	g.cmd.Env = append(os.Environ(), "WEIR="+g.weir.Addr, "PROVIDER="+upstream.URL+"/v1", "PROVIDER_KEY=none",
		"PYTHONPATH="+dir, "STEP=50", "TTL=60s")
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
	g := startGateway(t)
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

	g.weir.Stop()
	status, body = g.call("words 1", false)
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	g.weir.Start()
	g.share()
}

// share checks that many calls at once keep a budget, and that the holds of a killed proxy count as used.
func (g *gateway) share() {
	t := g.t
	const budget, callers, words = 2000, 8, 400
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
