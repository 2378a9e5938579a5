package clienttest

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/documents"
)

// slidingSetSum is the SHA-1 of the script in the document of the API levels.
const slidingSetSum = "504c42a925470b7ef2e060d65cd0ece7956924c8"

// spellings returns texts of a script that differ in their white space and comments.
func spellings(text string) []string {
	flat := regexp.MustCompile(`(?m)^[ \t]*`).ReplaceAllString(text, "")
	return []string{text, strings.TrimSpace(text), flat, strings.TrimSpace(flat), strings.TrimSpace(flat) + "\n",
		strings.ReplaceAll(text, "\n", "\r\n"), "\n\n" + text, strings.ReplaceAll(text, "\n", "\n\t  "),
		regexp.MustCompile(`--.*`).ReplaceAllString(text, "")}
}

// TestSlidingSetAnswersAsItsScript checks that weir and the judge answer the script of the API levels in the same way,
// for thousands of calls, whatever times the clients send.
func TestSlidingSetAnswersAsItsScript(t *testing.T) {
	texts := spellings(documents.Script(t, slidingSetSum))
	weirAddr, judgeAddr := twins(t)
	clients := []*redis.Client{redis.NewClient(&redis.Options{Addr: weirAddr}),
		redis.NewClient(&redis.Options{Addr: judgeAddr})}
	for _, c := range clients {
		defer func() { _ = c.Close() }()
	}
	begin, err := clients[0].Time(t.Context()).Result()
	require.NoError(t, err)
	for _, c := range clients {
		for _, text := range texts {
			require.Equal(t, sumOf(text), c.ScriptLoad(t.Context(), text).Val())
		}
	}
	rng := rand.New(rand.NewPCG(5, 7))
	limiterMs, denied, emptied := begin.UnixMilli(), 0, 0
	const calls = 6000
	for call := range calls {
		stepMs := rng.Int64N(1 + rng.Int64N(40))
		if call%500 == 499 {
			stepMs += rng.Int64N(5000)
		}
		limiterMs += stepMs
		skewMs := []int64{0, 3, 200, 20_000}[call/(calls/4)]
		nowMs := limiterMs + rng.Int64N(2*skewMs+1) - skewMs
		windowMs, most := []int64{50, 1000, 3000}[rng.IntN(3)], []int64{1, 20, 100}[rng.IntN(3)]
		key, form := fmt.Sprint("rl:", rng.IntN(3)), rng.IntN(100)
		var answers [2]string
		for k, c := range clients {
			pipe := c.Pipeline()
			pipe.Do(t.Context(), "DEBUG", "CLOCK", "ADVANCE", stepMs)
			switch text := texts[form%len(texts)]; {
			case form == 0:
				pipe.Del(t.Context(), key)
			case form < 20:
				pipe.Eval(t.Context(), text, []string{key}, nowMs-windowMs, nowMs, most, windowMs)
			default:
				pipe.EvalSha(t.Context(), sumOf(text), []string{key}, nowMs-windowMs, nowMs, most, windowMs)
			}
			pipe.PTTL(t.Context(), key)
			pipe.Type(t.Context(), key)
			pipe.ZCard(t.Context(), key)
			replies, err := pipe.Exec(t.Context())
			require.NoError(t, err)
			answers[k] = fmt.Sprint(replies[1].(interface{ String() string }), replies[2].(*redis.DurationCmd).Val(),
				replies[3], replies[4])
		}
		require.Equal(t, answers[1], answers[0], "call %d", call)
		if strings.Contains(answers[0], ": [0 ") {
			denied++
		} else if strings.Contains(answers[0], fmt.Sprintf(": [1 %d ", most-1)) {
			emptied++
		}
	}
	require.Greater(t, denied, 1000)
	require.Greater(t, emptied, 100)
}

func sumOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}
