package client

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/weirtest"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/policyfile"
	"github.com/weir-project/weir/server/policytext"
)

// grammars compares what all readers of limits make of the same text.
type grammars struct {
	t   *testing.T
	rdb *redis.Client
}

// elsewhere are words that mean something in one of the readers only: the terms of a policy, and options of decisions.
const elsewhere = " LIMIT SHADOW DISABLED RETRYAFTER RESERVED LAYOUT REPORT KEEP RESET OWNER IF UNLIMITED TTL COST " +
	"PARTIAL FROM ID "

// compare checks that RL.POLICY SET, the decision command, a policy file and the client accept the same limits with
// the same meaning, and that an error has the same text everywhere.
func (g grammars) compare(text string) (accepted bool) {
	words := strings.Fields(text)
	for _, word := range words {
		if strings.Contains(elsewhere, " "+strings.ToUpper(word)+" ") || strings.ContainsFunc(word, notPlain) {
			return false
		}
	}
	if len(words) < 3 { // RL.POLICY SET and the decisions count arguments first
		_, err := parseLimit(words)
		require.Error(g.t, err)
		return false
	}
	op, refused := policytext.Parse(append([]string{"SET", "p", "LIMIT"}, words...))
	file, fileErr := policyfile.Read(strings.NewReader(fmt.Sprintf("policies: {p: {limits: [%q]}}", text)), "f")
	_, setErr := g.rdb.Do(g.t.Context(), anys(append([]string{"RL.POLICY", "SET", "p", "LIMIT"}, words...))...).Result()
	mine, mineErr := parseLimit(words)
	explained, explainErr := g.rdb.Do(
		g.t.Context(), anys(append([]string{"RL.EXPLAIN", "RL." + words[0], "k"}, words[1:]...))...).Result()
	if refused != nil {
		require.EqualError(g.t, setErr, "ERR "+refused.Error(), text)
		require.ErrorContains(g.t, fileErr, refused.Error(), text)
		if !strings.EqualFold(words[0], "ACQUIRE") { // a decision, and no limit of a policy
			require.Error(g.t, explainErr, text)
			if !listsWhatFollows(refused) {
				require.EqualError(g.t, explainErr, "ERR "+refused.Error(), text)
			}
		}
		require.True(g.t, mineErr != nil || strings.Contains(refused.Error(), "at least 1ms") ||
			strings.Contains(refused.Error(), "IANA"), "%s: %v", text, refused)
		return false
	}
	for _, err := range []error{fileErr, setErr, mineErr, explainErr} {
		require.NoError(g.t, err, text)
	}
	limit := op.Policy.Terms.Limits[0]
	require.Equal(g.t, limit, file.Policies[0].Set.Policy.Terms.Limits[0], text)
	require.Equal(g.t, limits.Rule(limit.Limit), explained.(map[any]any)["rule"], text)
	require.Equal(g.t, limit.WaitNs, mine.WaitNs, text)
	info, err := g.rdb.Do(g.t.Context(), "RL.POLICY", "GET", "p").Result()
	require.NoError(g.t, err)
	kept := info.(map[any]any)["limits"].([]any)[0].(string)
	require.Equal(g.t, limits.Text(&limit), kept, text)
	again, err := parseLimit(strings.Fields(kept))
	require.NoError(g.t, err, kept)
	require.Equal(g.t, mine, again, "%s is kept as %s", text, kept)
	if limit.Limit.Mode.Calendar() {
		mine.Limit.Mode, mine.Limit.WindowNs = limit.Limit.Mode, 0
	}
	require.Equal(g.t, limit.Limit, mine.Limit, text)
	return true
}

// listsWhatFollows reports whether an error lists what may stand in a place, which differs between a policy and a
// decision.
func listsWhatFollows(err error) bool {
	for _, list := range []string{"option must be ", "limit must end with ", "LIMIT must be ", "a limit is written "} {
		if strings.HasPrefix(err.Error(), list) {
			return true
		}
	}
	return false
}

// notPlain reports whether a byte could be another one in YAML.
func notPlain(r rune) bool { return r <= ' ' || r > '~' }

func anys(words []string) (all []any) {
	for _, word := range words {
		all = append(all, word)
	}
	return all
}

var limitForms = []string{"TOKENBUCKET 10/s 100", "tokenbucket 0.5 1 MAXWAIT 2s", "LEAKYBUCKET 5/m 0", "FIXED 1m 5",
	"FIXED 1m 5 FIRST", "FIXED DAY 5 TZ Europe/Berlin", "fixed forever 5", "SLIDING 1h 1000000", "SLIDINGCOUNTER 60 5",
	"STRIKE 15m 4 2s", "STRIKE 15m 4 DELAY 2s 11 15m ATTEMPTS EXTEND", "ACQUIRE 5 1m", "LATER 1m 5"}

var limitWordsTried = strings.Fields("10/s 5/m 0 1 100 -1 abc 1m 60ns 999us 1ms 400d 366d DAY week FOREVER 1000000 " +
	"1000001 9007199254740992 9007199254740993 1/367d 0.5/s 3 2s DELAY ATTEMPTS EXTEND FIRST TZ UTC Europe/Berlin " +
	"Mars/Olympus MAXWAIT 1s MONTH HOLDER EVERYWHERE")

// TestOneGrammar tries limits that are right, and limits that differ from a right one in a few words.
func TestOneGrammar(t *testing.T) {
	g := grammars{t, weirtest.Start(t).Redis()}
	r, accepted := rand.New(rand.NewPCG(1, 2)), 0
	for range 2000 {
		words := strings.Fields(limitForms[r.IntN(len(limitForms))])
		for range r.IntN(3) {
			words[r.IntN(len(words))] = limitWordsTried[r.IntN(len(limitWordsTried))]
		}
		for range r.IntN(2) {
			words = append(words, limitWordsTried[r.IntN(len(limitWordsTried))])
		}
		if g.compare(strings.Join(words, " ")) {
			accepted++
		}
	}
	require.Greater(t, accepted, 200)
}

func FuzzOneGrammar(f *testing.F) {
	for _, form := range limitForms {
		f.Add(form)
	}
	rdb := weirtest.Start(f).Redis()
	f.Fuzz(func(t *testing.T, text string) { grammars{t, rdb}.compare(text) })
}

// TestRulesAreWhatWeirAccepts checks that weir accepts each rule that a constructor accepts, with the same meaning.
func TestRulesAreWhatWeirAccepts(t *testing.T) {
	g := grammars{t, weirtest.Start(t).Redis()}
	r, accepted := rand.New(rand.NewPCG(3, 4)), 0
	ns := func() time.Duration {
		return []time.Duration{-1, 0, 1, 60, time.Millisecond, time.Second, 1e9 + 1, 7 * 24 * time.Hour,
			time.Duration(engine.MaxWindowNs), time.Duration(engine.MaxWindowNs) + 1, 1<<63 - 1}[r.IntN(11)]
	}
	n := func() int64 {
		return []int64{-1, 0, 1, 2, 100, engine.MaxLogUnits, engine.MaxLogUnits + 1, engine.MaxUnits,
			engine.MaxUnits + 1}[r.IntN(9)]
	}
	zone := func() string { return []string{"", "UTC", "Europe/Berlin"}[r.IntN(3)] }
	window := func() Calendar { return []Calendar{Day, Week, Month, Year, Forever, "1m"}[r.IntN(6)] }
	step := func() Step { return Step{n(), ns(), []time.Duration{0, 0, 0, time.Second}[r.IntN(4)]} }
	for range 3000 {
		rules := []*Rule{TokenBucket(Rate{n(), ns()}, n()), LeakyBucket(Rate{n(), ns()}, n()), Fixed(ns(), n()),
			FixedFirst(ns(), n()), Sliding(ns(), n()), SlidingCounter(ns(), n()), Quota(window(), zone(), n()),
			Strikes(ns(), step()), Attempts(ns(), step(), step()).Extended().Extended()}
		rule := rules[r.IntN(len(rules))]
		if rule.Err() != nil {
			require.ErrorIs(t, rule.Err(), ErrBadRule)
			continue
		}
		accepted++
		text := strings.TrimPrefix(rule.Name(), "RL.")
		require.True(t, g.compare(text), text)
		again, err := parseLimit(strings.Fields(text))
		require.NoError(t, err)
		require.Equal(t, again.Limit, rule.local[0], text)
	}
	require.Greater(t, accepted, 200)
}
