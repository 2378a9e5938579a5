package commands

import (
	"slices"
	"strings"
	"testing"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/service"
)

// These are the classes of answers that a user can get.
const (
	noLogin    = "no login"
	noCommand  = "no permission for the command"
	noKey      = "no permission for the key"
	notCarried = "not carried" // this way takes other commands only
	may        = "may"
)

// wrappedRow is a command, a user and the prefix of the key. Limited users may use app: and may not use other:.
type wrappedRow struct {
	cmd       *command
	line, key string
	user      *wrappedUser
	code      engine.OpCode // the first operation that the command makes
	one       bool          // the command makes exactly one operation
}

// wrappedLine is one sending of a row.
type wrappedLine struct {
	words        []string
	user, key, n string
}

// normal replaces the parts of an answer that differ between lines.
func (l *wrappedLine) normal(answer string) string {
	return strings.NewReplacer(l.key, "KEY", "app:m"+l.n, "MINE").Replace(answer)
}

// wrappedWay is one way in which a command can arrive.
type wrappedWay struct {
	name     string
	needs    string                 // the command whose permission the way itself needs; "" for none
	only     func(*wrappedRow) bool // the rows that the way runs; nil for all
	carries  func(*wrappedRow) bool // the commands that the way accepts; nil for all
	looks    bool                   // needs permission for the keys, but not for the command
	verbatim bool                   // its answers must equal the RESP answers
	ask      func(t *testing.T, w *wrappedRows, l *wrappedLine) string
}

var wrappedWays = []wrappedWay{
	{name: "RESP", ask: askRESP},
	{name: "MULTI", needs: "multi", verbatim: true, ask: askMulti,
		carries: func(r *wrappedRow) bool { return !r.cmd.noMulti }},
	{name: "RL.WAIT", needs: "rl.wait", verbatim: true, ask: askWithin("RL.WAIT %s TIMEOUT 0"),
		carries: makes(engine.OpTake, engine.OpCheck)},
	{name: "RL.EXPLAIN", needs: "rl.explain", looks: true, ask: askWithin("RL.EXPLAIN %s"),
		carries: makes(engine.OpTake, engine.OpCheck, engine.OpReserve)},
	// TestKeysOfScripts covers every script.
	{name: "EVAL", needs: "eval", looks: true, verbatim: true, ask: askEval,
		only: func(r *wrappedRow) bool { return strings.HasPrefix(r.line, "EVALSHA "+allowN) }},
	{name: "/check", only: isPlainCheck, ask: askHTTPCheck},
	{name: "RLS", only: isPlainCheck, ask: askRLS},
	{name: "REST", verbatim: true, only: loggedIn, carries: inREST, ask: askREST("/")},
	{name: "REST MULTI", needs: "multi", verbatim: true, only: loggedIn, carries: inREST, ask: askREST("/multi-exec")},
	{name: "page", needs: "rl.inspect", verbatim: true, ask: askPage,
		carries: func(r *wrappedRow) bool { return slices.Contains(byHand, r.cmd.Full) }},
}

func isPlainCheck(r *wrappedRow) bool { return r.line == "RL.CHECK p %k" }

func makes(codes ...engine.OpCode) func(*wrappedRow) bool {
	return func(r *wrappedRow) bool { return r.one && slices.Contains(codes, r.code) }
}

// expect returns the classes that are allowed as the answer. A way that does not carry the command may say so, or may
// check the permission first.
func (r *wrappedRow) expect(way *wrappedWay) []string {
	plain := r.plain(way.looks)
	switch {
	case r.user.rules == "" && (way.needs != "" || !r.cmd.noAuth):
		return []string{noLogin}
	case way.needs != "" && !r.grants(way.needs) || way.name == "page" && r.user.limited: // the page shows all keys
		plain = noCommand
	}
	switch carried := way.carries == nil || way.carries(r); {
	case carried:
		return []string{plain}
	case plain == may:
		return []string{notCarried}
	}
	return []string{notCarried, plain}
}

// plain returns the class that the rules require for the command and the key.
func (r *wrappedRow) plain(looks bool) string {
	inner := r.cmd.Full == "rl.wait" && !r.grants("rl.tokenbucket") // its line carries that
	switch {
	case !looks && (!r.grants(r.cmd.Full) || inner):
		return noCommand
	case r.user.limited && r.key == "other:":
		return noKey
	}
	return may
}

func (r *wrappedRow) grants(name string) bool {
	u := r.user
	switch {
	case name == r.cmd.Full && (u.sends || r.cmd.noAuth):
		return true
	case u.everything:
		return name != r.cmd.Full
	}
	return u.wraps && slices.Contains(wrappers, name) || name == "rl.inspect" && strings.Contains(u.rules, name)
}

// classOf returns the class of an answer.
func classOf(answer string) string {
	switch {
	case strings.HasPrefix(answer, "-NOAUTH"):
		return noLogin
	case answer == "-"+string(service.ErrNoKey):
		return noKey
	case strings.HasPrefix(answer, "-NOPERM"):
		return noCommand
	case answer == "-"+string(errNotInMulti), answer == "-"+string(errNotByHand), answer == "-"+errNeedsSession.Error(),
		strings.HasPrefix(answer, "-ERR command must be a decision"),
		// A single word is not a decision.
		strings.HasPrefix(answer, "-ERR wrong number of arguments for 'rl.wait' command"):
		return notCarried
	}
	return may
}

func byteWords(words []string) [][]byte {
	args := make([][]byte, len(words))
	for i, word := range words {
		args[i] = []byte(word)
	}
	return args
}

// withClient runs send with a client that is logged in as the line's user.
func withClient(t *testing.T, w *wrappedRows, l *wrappedLine, send func(c *testClient) string) string {
	c := w.srv.client(t)
	defer c.sess.Close()
	if l.user != "nobody" {
		c.as(l.user, "x")
	}
	return send(c)
}

func askRESP(t *testing.T, w *wrappedRows, l *wrappedLine) string {
	return withClient(t, w, l, func(c *testClient) string { return flat(t, c.raw(l.words...)) })
}

func askMulti(t *testing.T, w *wrappedRows, l *wrappedLine) string {
	return withClient(t, w, l, func(c *testClient) string {
		answer := c.say("MULTI")
		if answer == "OK" {
			answer = flat(t, c.raw(l.words...))
		}
		if answer == "QUEUED" {
			answer = c.say("EXEC")
		}
		return answer
	})
}

// askWithin returns a way that sends a line inside another command.
func askWithin(outer string) func(*testing.T, *wrappedRows, *wrappedLine) string {
	before, after, _ := strings.Cut(outer, "%s")
	return func(t *testing.T, w *wrappedRows, l *wrappedLine) string {
		within := *l
		within.words = slices.Concat(split(before), l.words, split(after))
		return askRESP(t, w, &within)
	}
}

// askEval sends a script by its text.
func askEval(t *testing.T, w *wrappedRows, l *wrappedLine) string {
	byText := *l
	byText.words = slices.Concat([]string{"EVAL", w.text}, l.words[2:])
	return askRESP(t, w, &byText)
}
