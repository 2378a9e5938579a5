package clienttest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// traefikTexts are the SHA-1s of the texts of Traefik's script, by the release of its Go module. The text of 3.7.15,
// which has no module, differs in one expression.
var traefikTexts = map[string]string{
	"v3.4.0":  "a82138cfb0cc9aa6e05d666c1f912744aefbe711",
	"v3.7.13": "3d93177e9b9a18f241edddc8d7e7fa1c47ae4eb6",
	"v3.7.15": "7d2a5c0821964964e7f36858db0f3c4a49951c4d",
}

// traefikText returns the script of a release from its Go module.
func traefikText(t *testing.T, release string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/traefik/traefik/v3@"+release)
	cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: the source of Traefik cannot be downloaded: %v", err)
	}
	require.NoError(t, err)
	var module struct{ Dir string }
	require.NoError(t, json.Unmarshal(out, &module))
	source, err := os.ReadFile(filepath.Join(module.Dir, "pkg/middlewares/ratelimiter/lua.go"))
	require.NoError(t, err)
	text := regexp.MustCompile("(?s)`(.*?)`").FindSubmatch(source)
	require.Len(t, text, 2)
	return string(text[1])
}

// TestTraefikAnswersAsItsScript checks that weir and the judge answer the script of Traefik's rateLimit.redis in the
// same way, for thousands of calls of proxies whose clocks differ.
func TestTraefikAnswersAsItsScript(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: the script of Traefik runs with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	t.Parallel()
	texts := []string{traefikText(t, "v3.4.0"), traefikText(t, "v3.7.13")}
	texts = append(texts, strings.Replace(texts[1], "table.maxn(rl_source)", "#rl_source", 1))
	for i, release := range []string{"v3.4.0", "v3.7.13", "v3.7.15"} {
		require.Equal(t, traefikTexts[release], sumOf(texts[i]), release)
	}
	weirAddr, judgeAddr := twins(t)
	clients := []*redis.Client{redis.NewClient(&redis.Options{Addr: weirAddr}),
		redis.NewClient(&redis.Options{Addr: judgeAddr})}
	for _, c := range clients {
		defer func() { _ = c.Close() }()
	}
	rng := rand.New(rand.NewPCG(3, 4))
	nowUs, waits, denials := int64(1_700_000_000_000_000), 0, 0
	for call := range 6000 {
		stepMs := rng.Int64N(1 + rng.Int64N(400))
		nowUs += stepMs*1000 + rng.Int64N(1000)
		text := texts[rng.IntN(len(texts))]
		rate, burst := []float64{3, 0.5, 1000}[rng.IntN(3)]/1e6, []int64{3, 1000}[rng.IntN(2)]
		maxDelayUs := []int64{0, 500_000, 3_000_000}[rng.IntN(3)]
		sentUs := nowUs + []int64{0, 0, rng.Int64N(2_000_000) - 1_000_000}[rng.IntN(3)]
		key, form := fmt.Sprint("rate:", rng.IntN(2)), rng.IntN(100)
		var answers [2]string
		for k, c := range clients {
			pipe := c.Pipeline()
			pipe.Do(t.Context(), "DEBUG", "CLOCK", "ADVANCE", stepMs)
			if form == 0 {
				pipe.Del(t.Context(), key)
			} else {
				pipe.Eval(t.Context(), text, []string{key}, rate, burst, 1+form%4, sentUs, maxDelayUs)
			}
			pipe.PTTL(t.Context(), key)
			pipe.HGetAll(t.Context(), key)
			replies, err := pipe.Exec(t.Context())
			require.NoError(t, err)
			answers[k] = fmt.Sprint(replies[1].(interface{ String() string }), replies[2].(*redis.DurationCmd).Val(),
				replies[3].(*redis.MapStringStringCmd).Val())
			if cmd, ok := replies[1].(*redis.Cmd); ok && k == 0 {
				wait, err := strconv.ParseFloat(cmd.Val().([]any)[1].(string), 64)
				require.NoError(t, err)
				if wait > float64(maxDelayUs) {
					denials++
				} else if wait > 0 {
					waits++
				}
			}
		}
		require.Equal(t, answers[1], answers[0], "call %d", call)
	}
	require.Greater(t, denials, 300)
	require.Greater(t, waits, 300)
}
