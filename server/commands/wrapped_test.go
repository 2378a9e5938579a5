package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/httpapi"
	"github.com/weir-project/weir/server/servertest"
)

// wrappers are the commands that contain other commands.
var wrappers = []string{"multi", "exec", "rl.wait", "rl.explain", "eval"}

// wrappedUser is a user with its rules. In the rules %c is the row's command and %w stands for the wrappers.
type wrappedUser struct {
	name, rules string
	limited     bool // to the keys app:*
	sends       bool // may send the command
	wraps       bool // may send the wrappers
	everything  bool // may send any other command
}

var wrappedUsers = []wrappedUser{
	{"all", "~* +@all", false, true, true, true},
	{"wrappers", "~app:* -@all %w", true, false, true, false},
	{"only", "~app:* -@all +%c", true, true, false, false},
	{"both", "~app:* -@all %w +%c", true, true, true, false},
	{"but", "~app:* +@all -%c", true, false, true, true},
	{"most", "~app:* +@all", true, true, true, true},
	{"blind", "~* -@all %w +%c", false, true, true, false},
	{"looker", "~* -@all %w +rl.inspect", false, false, true, false},
	{"actor", "~* -@all %w +rl.inspect +%c", false, true, true, false},
	{"nobody", "", true, false, false, false},
}

// TestWrappedCommandsAskTheSame checks that a user gets the same answer whichever way a command arrives. The answer
// is that a login is missing, that permission for the command or the key is missing, or the reply itself. Every
// command that can be sent is a row, so a new command is covered or fails this test.
func TestWrappedCommandsAskTheSame(t *testing.T) {
	total, rows := 0, &wrappedRows{text: scriptOfRedisRate(t)}
	newCommandTable(families()...).each(func(cmd *command) {
		if cmd.plan == nil && cmd.run == nil && cmd.read.run == nil {
			return // a container command only shows its usage
		}
		if cmd.name == "SADD" || cmd.name == "SREM" {
			return // their only key is a setting, which needs all keys: see TestBlacklistIsForUsersOfAllKeys
		}
		if cmd.name == "RL.EVENTS" {
			return // it reads one key, which is no argument: see TestEventsNeedTheirKey
		}
		rows.of(t, cmd)
	})
	for _, way := range wrappedWays {
		t.Logf("%-10s %5d rows", way.name, rows.count[way.name])
		require.NotZero(t, rows.count[way.name], way.name)
		total += rows.count[way.name]
	}
	t.Logf("%d rows, %d differences", total, len(rows.differences))
	assert.Empty(t, strings.Join(rows.differences, "\n"))
}

// wrappedRows runs the rows of the table, one command at a time.
type wrappedRows struct {
	text        string // the text of a recognised script
	srv         *testServer
	web         *httpapi.Server
	rls         servertest.Envoy
	keys        int // how many keys were used so far
	count       map[string]int
	differences []string
}

// of runs the rows of one command, on a server of its own.
func (w *wrappedRows) of(t *testing.T, cmd *command) {
	lines := wrappedLines[cmd.Full]
	if lines == nil {
		operates := cmd.plan != nil || cmd.keyed || cmd.carried != nil
		require.False(t, operates, "%s is in no row: give it one in wrappedLines", cmd.Full)
		words := strings.Fields(strings.ToUpper(strings.ReplaceAll(cmd.Full, "|", " ")))
		for n := max(cmd.arity, -cmd.arity); len(words) < n; {
			words = append(words, "0")
		}
		lines = []string{strings.Join(words, " ")}
	}
	known := cmd.carried == nil || slices.Contains(wrappers, cmd.Full)
	require.True(t, known, "%s carries commands: make it a way in of this test", cmd.Full)
	w.serve(t, cmd)
	for _, line := range lines {
		require.Equal(t, cmd.keyed, strings.Contains(line, "%k"), "the keys of %s", cmd.Full)
		keys := []string{"app:", "other:"}[:1+oneIf(cmd.keyed)]
		code, one := w.codeOf(t, cmd, line)
		for i := range wrappedUsers {
			for _, key := range keys {
				w.row(t, &wrappedRow{cmd: cmd, line: line, user: &wrappedUsers[i], key: key, code: code, one: one})
			}
		}
	}
}

func (w *wrappedRows) serve(t *testing.T, cmd *command) {
	var text strings.Builder
	fill := strings.NewReplacer("%c", cmd.Full, "%w", "+"+strings.Join(wrappers, " +"))
	for _, u := range wrappedUsers {
		if u.rules != "" {
			fmt.Fprintln(&text, "user", u.name, "on", hashOf("x"), fill.Replace(u.rules))
		}
	}
	w.srv = newTestServer(t, Config{EnableDebug: true,
		LoadUsers: func() (*acl.Users, error) { return ParseUsers([]byte(text.String())) }})
	w.web = newHTTPCheck(w.srv.Shared, httpapi.CheckProtected)
	_, w.rls = serveRLS(t, w.srv.Shared)
	boss := w.srv.client(t).as("all", "x")
	for _, policy := range []string{"p", "q", "r", "p:user"} {
		require.Equal(t, "1", boss.say("RL.POLICY SET "+policy+" LIMIT TOKENBUCKET 10/s 10"))
	}
	if w.count == nil {
		w.count = make(map[string]int)
	}
}

// row sends the command in every way, and compares each answer with the expected ones.
func (w *wrappedRows) row(t *testing.T, r *wrappedRow) {
	plain := ""
	for _, way := range wrappedWays {
		if way.only != nil && !way.only(r) {
			continue
		}
		w.count[way.name]++
		line, before := w.line(r), w.srv.lim.Calls
		want, got := r.expect(&way), line.normal(way.ask(t, w, line))
		if r.cmd.plan != nil && !slices.Contains(want, may) && w.srv.lim.Calls != before {
			w.differs(r, way.name, "nothing to reach the limiter", got)
		}
		if !slices.Contains(want, classOf(got)) {
			w.differs(r, way.name, strings.Join(want, " or "), got)
		}
		if way.name == "RESP" {
			plain = got
			require.False(t, r.cmd.plan != nil && strings.HasPrefix(got, "-ERR "), "%s shows nothing: %s", r.line, got)
		} else if way.verbatim && r.cmd.keyed && want[0] == may && classOf(plain) == may && got != plain {
			w.differs(r, way.name, plain, got)
		}
	}
}

func (w *wrappedRows) differs(r *wrappedRow, way, want, got string) {
	difference := fmt.Sprintf("%s of %s, %s %s: want %s, got %s", way, r.user.name, r.line, r.key, want, got)
	w.differences = append(w.differences, difference)
}

// codeOf returns the operation that a command makes. one reports whether it makes exactly one.
func (w *wrappedRows) codeOf(t *testing.T, cmd *command, line string) (code engine.OpCode, one bool) {
	if cmd.plan == nil {
		return 0, false
	}
	c := w.srv.client(t)
	defer c.sess.Close()
	c.sess.batch = w.srv.Batches.Get()
	defer c.sess.dropBatch()
	words := w.line(&wrappedRow{line: line, user: &wrappedUsers[0]}).words
	require.NoError(t, cmd.plan(c.sess, byteWords(words)), line)
	ops := c.sess.batch.Ops
	return ops[0].Code, len(ops) == 1
}

// line returns the words of a row, with a key that no other row has used.
func (w *wrappedRows) line(r *wrappedRow) *wrappedLine {
	w.keys++
	n := fmt.Sprint(w.keys)
	words := split(strings.NewReplacer("%k", r.key+n, "%m", "app:m"+n, "%n", n).Replace(r.line))
	if i := slices.Index(words, "%s"); i >= 0 {
		words[i] = w.text
	}
	return &wrappedLine{words: words, user: r.user.name, key: r.key + n, n: n}
}
