package engine_test

import (
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/race"
)

func laidOut(name, layout string, limits ...engine.PolicyLimit) engine.Op {
	return setPolicy(name, engine.Policy{Layout: layout, Limits: limits})
}

// TestLayouts checks which layouts are valid, and which names they match.
func TestLayouts(t *testing.T) {
	for layout, problem := range map[string]string{
		"rate-limit:{key}:{policy}": "", "rl:auth:{key}": "", "{policy}{key}": "", "{key}.": "", "{{key}}:login": "",
		"rl:{policy}:{policy}:{key}": "",
		"{key}":                      "must contain more than", "rl:": "exactly once", "rl:{key}{key}": "exactly once",
		"rl:{ip}:{key}": "{key} and {policy} only", "rl:{userId}": "exactly once",
		"a b{key}": "without blanks", "rl:\x00{key}": "without blanks", "r\u00e4t:{key}": "without blanks",
		"policy|p|0|{key}":                 "must not begin",
		strings.Repeat("x", 128) + "{key}": "", strings.Repeat("x", 129) + "{key}": "at most 128",
		strings.Repeat("{policy}", 40) + "{key}": "at most 256",
	} {
		err := engine.CheckLayout(layout, "login")
		if problem == "" {
			require.NoError(t, err, layout)
		} else {
			require.ErrorContains(t, err, problem, layout)
		}
	}
	long := "{policy}{policy}{policy}:{key}" // with the longest name more than a layout may have
	require.NoError(t, engine.CheckLayout(long, "login"))
	require.Error(t, engine.CheckLayout(long, strings.Repeat("p", engine.MaxPolicyLen)))
}

// TestNamesOfLayouts checks that the mapping from a limiter to its name and the mapping back are inverse, for any
// key.
func TestNamesOfLayouts(t *testing.T) {
	table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1e18}
	for name, layout := range map[string]string{"login": "rate-limit:{key}:{policy}",
		"auth": "rl:auth:{key}", "plain": ""} {
		decideAt(table, at, laidOut(name, layout, quotaLimit(5), quotaLimit(6)))
	}
	set := table.Policies()
	for _, key := range []string{"k", "ip:2001:db8::/64", ":", "rl:auth:x", "\x00\xff",
		strings.Repeat("k", engine.MaxKeyLen)} {
		for policy, want := range map[string]string{"login": "rate-limit:" + key + ":login", "auth": "rl:auth:" + key} {
			p := set.Get([]byte(policy))
			for i := range 2 {
				shown, shared, ok := set.ShownAs(nil, p.NameOf(i, []byte(key)))
				require.True(t, ok && shared)
				require.Equal(t, want, string(shown))
			}
			of, back := set.OfLayout([]byte(want))
			require.Equal(t, policy, of.Name)
			require.Equal(t, key, string(back))
		}
		_, _, ok := set.ShownAs(nil, set.Get([]byte("plain")).NameOf(0, []byte(key)))
		require.False(t, ok)
		_, _, ok = set.ShownAs(nil, []byte(key))
		require.False(t, ok, "a plain limiter has no layout")
	}
	for _, none := range []string{"rl:auth:", "rate-limit::login", "rate-limit:login", "xrl:auth:k",
		"rl:auth:policy|auth|0|k", "policy|login|0|k",
		"rl:auth:" + strings.Repeat("k", engine.MaxKeyLen+1)} {
		p, _ := set.OfLayout([]byte(none))
		require.Nil(t, p, none)
	}
}

// TestNestedLayouts checks that a name belongs to the layout with more fixed text, whichever policy came first. A
// limiter whose name belongs to another layout keeps its own name.
func TestNestedLayouts(t *testing.T) {
	table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1e18}
	for _, l := range [][2]string{{"auth", "rl:auth:{key}"}, {"all", "rl:{key}"}, {"fail", "rl:auth:fail:{key}"}} {
		require.Equal(t, engine.OK, decideAt(table, at, laidOut(l[0], l[1], quotaLimit(1))).Status)
	}
	set := table.Policies()
	for name, want := range map[string][2]string{"rl:auth:fail:k": {"fail", "k"}, "rl:auth:k": {"auth", "k"},
		"rl:auth:fail:": {"auth", "fail:"}, "rl:k": {"all", "k"}} {
		p, key := set.OfLayout([]byte(name))
		require.Equal(t, want, [2]string{p.Name, string(key)}, name)
	}
	_, _, ok := set.ShownAs(nil, set.Get([]byte("all")).NameOf(0, []byte("auth:k")))
	require.False(t, ok)
}

// TestLayoutsDoNotMeet checks that two policies cannot have layouts which make the same name, unless one layout has
// more fixed text.
func TestLayoutsDoNotMeet(t *testing.T) {
	for _, c := range []struct {
		first, second string
		meet          bool
	}{
		{"rl:auth:{key}", "rl:deals:w:{key}", false}, {"rl:auth:{key}", "rl:auth:{key}", true},
		{"rl:{key}", "rl:auth:{key}", false},
		{"rate-limit:{key}:{policy}", "rate-limit:{key}:{policy}", false}, {"{key}:a", "b:{key}", true},
		{"x:{key}:a", "x:{key}:b:a", false}, {"x{key}", "y{key}", false},
		{"x:{key}:b", "x:y:{key}", true}, {"x:{key}:b", "x:y:{key}:b", false},
	} {
		table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1e18}
		require.Equal(t, engine.OK, decideAt(table, at, laidOut("one", c.first, quotaLimit(1))).Status)
		d := decideAt(table, at, laidOut("two", c.second, quotaLimit(1)))
		require.Equal(t, c.meet, d.Status == engine.LayoutTaken, "%+v", c)
		require.Equal(t, c.meet, table.Policies().Get([]byte("two")) == nil,
			"a refused change must not change anything")
		require.Equal(t, engine.OK, decideAt(table, at, laidOut("one", c.first, quotaLimit(2))).Status,
			"a policy must be able to keep its own layout")
		decideAt(table, at, laidOut("one", "", quotaLimit(2)))
		require.Equal(t, engine.OK, decideAt(table, at, laidOut("two", c.second, quotaLimit(1))).Status,
			"the name must be free again")
	}
}

// TestResetPolicy checks that OpResetPolicy resets every limiter of a policy for one key, on every replica alike, and
// nothing else.
func TestResetPolicy(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	tables := []*engine.Table{engine.NewTable(engine.Options{Shards: 1}), engine.NewTable(engine.Options{Shards: 64})}
	for _, table := range tables {
		decideAt(table, at, laidOut("p", "rl:{key}", quotaLimit(5), quotaLimit(6), quotaLimit(7)))
		decideAt(table, at, laidOut("q", "", quotaLimit(5)))
		decideAt(table, at, check(2, "p", "k", "q", "k", "p", "other"))
		decideAt(table, at, engine.Op{Code: engine.OpBlock, Key: []byte("k"), TTLNs: 1e9})
		reset := engine.Op{Code: engine.OpResetPolicy, Key: []byte("policy|p|0|k")}
		require.EqualValues(t, 1, decideAt(table, at, reset).Allowed)
		require.Zero(t, decideAt(table, at, reset).Allowed)
		var left []string
		table.Scan(at, 0, 100, func(key []byte, _ engine.Algorithm) { left = append(left, string(key)) })
		require.ElementsMatch(
			t, []string{"k", "policy|q|0|k", "policy|p|0|other", "policy|p|1|other", "policy|p|2|other"}, left)
	}
	require.Equal(t, tables[0].StateHash(at), tables[1].StateHash(at))
}

// TestStoredLayout checks that a policy with a layout survives its stored form. A policy without new fields must be
// stored as before.
func TestStoredLayout(t *testing.T) {
	for _, p := range []engine.Policy{
		{Layout: "rl:{key}"}, {ReportNs: 60e9}, {Layout: "rl:{key}", ReportNs: 1}, {Owner: "team", Layout: "{key}:x"},
		{Owner: "team", ReportNs: engine.MaxWindowNs},
	} {
		p.Name, p.Version, p.Limits = "p", 3, []engine.PolicyLimit{quotaLimit(5)}
		stored := p.Append(nil)
		require.EqualValues(t, 3, stored[0])
		back, err := engine.DecodePolicy("p", stored)
		require.NoError(t, err)
		require.Equal(t, &p, back)
		for cut := range len(stored) {
			_, err = engine.DecodePolicy("p", stored[:cut])
			require.ErrorIs(t, err, engine.ErrStored)
		}
	}
}

// TestReport checks that every answer of a policy with ReportNs reports the rate of the limit that binds, for every
// kind of check.
func TestReport(t *testing.T) {
	at := engine.Stamp{NowNs: 1e18}
	for _, c := range []struct {
		report, want int64
		limit        engine.PolicyLimit
	}{
		{0, 50, engine.PolicyLimit{Limit: bucketOf(10, 1e9, 50)}},
		{1e9, 10, engine.PolicyLimit{Limit: bucketOf(10, 1e9, 50)}},
		{60e9, 60, engine.PolicyLimit{Limit: bucketOf(1, 1e9, 20)}},
		{1e9, 1, engine.PolicyLimit{Limit: bucketOf(1, 60e9, 20)}},
		{engine.MaxWindowNs, engine.MaxUnits, engine.PolicyLimit{Limit: bucketOf(engine.MaxUnits, 1, 20)}},
		{60e9, 5, quotaLimit(5)},
	} {
		table := engine.NewTable(engine.Options{})
		p := engine.Policy{ReportNs: c.report, Limits: []engine.PolicyLimit{c.limit}}
		decideAt(table, at, setPolicy("one", p))
		p.Limits = append(p.Limits, quotaLimit(1000))
		decideAt(table, at, setPolicy("two", p))
		tell := func(op engine.Op) {
			t.Helper()
			require.Equal(t, c.want, decideAt(table, at, op).Limit, "%+v: %+v", c, op)
		}
		for _, name := range []string{"one", "two"} {
			tell(check(1, name, "k"))
			tell(check(c.limit.Limit.Max+1, name, "k"))
			reserve := check(1, name, "held")
			reserve.Code, reserve.ID, reserve.TTLNs = engine.OpReserve, []byte("id"+name), 1e9
			tell(reserve)
			decideAt(table, at, engine.Op{Code: engine.OpBlock, Key: []byte("blocked"), TTLNs: 1e9})
			tell(check(1, name, "blocked"))
		}
		tell(check(1, "one", "a", "two", "a"))
		decideAt(table, at, engine.Op{Code: engine.OpPolicy, Key: []byte("one"),
			Policy: &engine.PolicyChange{Do: engine.PolicyDisable}})
		tell(check(1, "one", "a"))
	}
}

// TestTokens checks that the level of a bucket is reported to a billionth of a token, rounded down.
func TestTokens(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	rng := rand.New(rand.NewPCG(27, 1))
	for range 3000 {
		units, perNs := 1+rng.Int64N(1000), 1+rng.Int64N(1e11)
		burst := 1 + rng.Int64N(100)
		table, at := engine.NewTable(engine.Options{}), engine.Stamp{NowNs: 1e18, WallOffsetNs: 5e17}
		taken := 1 + rng.Int64N(burst+20)
		op := engine.Op{Key: []byte("k"), Limit: bucketOf(units, perNs, burst), Cost: taken, WaitNs: engine.MaxWindowNs}
		if decideAt(table, at, op).Allowed == 0 {
			continue
		}
		passedNs := rng.Int64N(perNs)
		at.NowNs += passedNs
		info, live := table.Inspect(at, []byte("k"))
		if !live {
			continue
		}
		want := new(big.Rat).Add(big.NewRat(burst-taken, 1), big.NewRat(passedNs*units, perNs)) // below 2^63
		got, ok := new(big.Rat).SetString(info.Tokens)
		require.True(t, ok, info.Tokens)
		short := new(big.Rat).Sub(want, got)
		require.True(t, short.Sign() >= 0 && short.Cmp(big.NewRat(1, 1e9)) < 0, "%s is not %s", info.Tokens,
			want.FloatString(12))
		require.False(t, strings.Contains(info.Tokens, ".") && strings.HasSuffix(info.Tokens, "0"), info.Tokens)
		require.Equal(t, (at.NowNs+at.WallOffsetNs)/1e6, info.AtMs)
	}
}
