package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// someLimit returns a limit in a notation that a user may choose. Units may be missing, too small or too large, and
// the case varies.
func someLimit(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	n := 1 + r.IntN(1000)
	span := pick(fmt.Sprint(n), fmt.Sprintf("%dms", n), fmt.Sprintf("%ds", 60*n), "1d", "24h", "1w", "90m",
		fmt.Sprintf("%dus", 1000+n), fmt.Sprintf("%dns", 1_000_000+n))
	rate := pick(fmt.Sprint(n), "0.5", fmt.Sprintf("%d/m", n), "1/6s", fmt.Sprintf("60/%dm", n),
		fmt.Sprintf("%d/60s", n), "1000/1h", "3/500ms")
	return pick(
		fmt.Sprintf("TOKENBUCKET %s %d", rate, n), fmt.Sprintf("tokenbucket %s %d maxwait %s", rate, n, span),
		fmt.Sprintf("LEAKYBUCKET %s %d", rate, n-1),
		fmt.Sprintf("FIXED %s %d", span, n), fmt.Sprintf("fixed %s %d first", span, n),
		fmt.Sprintf("FIXED FOREVER %d", n),
		fmt.Sprintf("FIXED %s %d", pick("DAY", "week", "MONTH", "YEAR"), n),
		fmt.Sprintf("FIXED DAY %d TZ %s", n, pick("UTC", "Europe/Berlin", "America/New_York")),
		fmt.Sprintf("SLIDING %s %d", span, n), fmt.Sprintf("SLIDINGCOUNTER %s %d", span, n), fmt.Sprintf(
			"STRIKE %s 2 %s 5 1h", span, span), fmt.Sprintf("STRIKE %s 2 DELAY %s 5 1h ATTEMPTS EXTEND", span, span),
	)
}

func someLimits(r *rand.Rand, most int) string {
	limits := make([]string, 1+r.IntN(most))
	for i := range limits {
		limits[i] = someLimit(r)
	}
	return "[" + strings.Join(limits, ", ") + "]"
}

func somePolicy(r *rand.Rand, name string) string {
	text := fmt.Sprintf("  %s:\n    limits: %s\n", name, someLimits(r, 8))
	for field, values := range map[string][]string{
		"shadow": {"true", "false"}, "disabled": {"true", "false"}, "reserved": {"20%", "0.1%", "12.5%", "99.9%"},
		"retry_after": {"1", "60s", "1500us", "90000ms", "1ms", "7d"},
		"layout":      {"rate-limit:{key}:{policy}", "rl:{policy}:{key}"}, "report": {"burst", "1m", "90s"},
	} {
		if r.IntN(2) == 0 {
			text += fmt.Sprintf("    %s: %s\n", field, values[r.IntN(len(values))])
		}
	}
	if n := r.IntN(4); n > 0 {
		text += "    overrides:\n"
		for i := range n {
			what := []string{"unlimited: true", "limits: " + someLimits(r, 3)}[r.IntN(2)] + []string{"",
				", ttl: 1h"}[r.IntN(2)]
			text += fmt.Sprintf("      - {key: 'k%d%s', %s}\n", i, []string{"", "*", "?a", " b"}[r.IntN(4)], what)
		}
	}
	return text
}

// TestAnyFileIsAppliedOnce checks random files. After apply, diff finds no difference, and a server that starts with
// the file changes nothing.
func TestAnyFileIsAppliedOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(26, 6))
	p := start(t)
	x := newTeam(t, p.addr, "team-a", "")
	for range 5 {
		text := "owner: team-a\npolicies:\n"
		for i := range 100 {
			text += somePolicy(r, fmt.Sprint("p", i))
		}
		require.NoError(t, os.WriteFile(x.path, []byte(text), 0o600))
		x.applied(prune)
		x.same()
		require.Equal(t, "nothing changed\n", x.applied(prune))
	}
	p.stop()
}

// TestTheRightsOfAJob checks that the categories named in the manual permit a CI job to test, compare and apply.
func TestTheRightsOfAJob(t *testing.T) {
	dir := t.TempDir()
	users, password := filepath.Join(dir, "users"), filepath.Join(dir, "password")
	// printf %s secret | sha256sum
	const ci = "user ci on #2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b +@policy +@transaction\n"
	require.NoError(t, os.WriteFile(users, []byte(ci), 0o600))
	require.NoError(t, os.WriteFile(password, []byte("secret\n"), 0o600))
	p := start(t, "--users-file="+users)
	x := newTeam(t, p.addr, "team-a", "a: {limits: [FIXED 1m 1], overrides: [{key: 'vip:*', unlimited: true}]}")
	x.at.PasswordFile, x.at.User = password, "ci"
	x.applied(prune)
	x.same()
	p.stop()
}
