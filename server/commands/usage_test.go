package commands

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/server/service"
)

// saysWhatIsAccepted matches an error that states what is accepted: the form of an argument, the syntax of the
// command, or where to find the names.
var saysWhatIsAccepted = regexp.MustCompile(`^-(ERR|NOPROTO) (` +
	`wrong number of arguments for '[^']+' command: [A-Z.]+( |$)|syntax error: [A-Z.]+ |unknown subcommand '[^']*'. Try [A-Z.]+ HELP\.` +
	`|unknown command '[^']*', with args beginning with: .*did you mean` +
	`|.*\b[A-Za-z_-]+ (must|should) |.*\bneeds a |.*RL.POLICY LIST names them all|.*, use |.* belong to the limiters of policies: decide with` +
	`|.* is not supported: |.* takes .* keys and |EXEC without MULTI|DISCARD without MULTI|.* goes with |.*can't be greater than number of args` +
	`|.* were given, |.* only support |.* was started without|.*SET takes key)`)

// refuses fails the test if the error about a wrong word does not state what is accepted.
func refuses(t *testing.T, line, reply string) {
	t.Helper()
	if strings.HasPrefix(reply, "-") && !exemptError.MatchString(reply) {
		assert.Regexp(t, saysWhatIsAccepted, reply, line)
	}
}

// exemptError matches errors that are not about an argument, but about the state of a key or of the server.
var exemptError = regexp.MustCompile(`^-(NOAUTH|WRONGPASS|WRONGTYPE|NOSCRIPT|NOHOLD|CLUSTERDOWN|ERR (` +
	`This instance has cluster support|The server is running without a config file|DEBUG is not enabled|No such client|weir runs no Lua|AUTH <password> called without` +
	`|no backup is under way|this server keeps|there is no cluster|CONFIG SET failed|Background save|this weir is one node|No shutdown in progress|SHUTDOWN is not possible|another backup))`)

// TestArityErrorsShowTheUsage checks that every command shows its syntax when it is sent without arguments, or with
// one too few.
func TestArityErrorsShowTheUsage(t *testing.T) {
	c := newTestServer(t, Config{EnableDebug: true}).client(t)
	var walk func(cmd *command, words []string)
	walk = func(cmd *command, words []string) {
		least := max(cmd.arity, -cmd.arity)
		for n := len(words); n < least; n++ {
			line := append(append([]string(nil), words...), strings.Fields(strings.Repeat("1 ", n-len(words)))...)
			reply := c.raw(line...)
			require.Contains(t, reply, "-ERR wrong number of arguments for '"+cmd.Full+"' command: "+cmd.usage(), line)
			require.Contains(t, cmd.usage(), strings.ToUpper(words[len(words)-1]))
		}
		for _, sub := range cmd.subs {
			walk(sub, append(words[:len(words):len(words)], sub.name))
		}
	}
	for _, cmd := range newCommandTable(families()...).all {
		walk(cmd, []string{cmd.name})
	}
}

// TestWrongWordsAreTold checks each error about a wrong word. It puts one in every position of every form in the
// reference, and the error must state what is accepted there.
func TestWrongWordsAreTold(t *testing.T) {
	c := newTestServer(t, Config{EnableDebug: true}).client(t)
	tried := 0
	try := func(words []string) {
		for at := 1; at < len(words); at++ {
			for _, wrong := range []string{"?!", "", strings.Repeat("x", 600)} {
				line := append([]string(nil), words...)
				line[at] = wrong
				refuses(t, strings.Join(line, " "), strings.TrimSuffix(c.raw(line...), "\r\n"))
				tried++
			}
		}
	}
	var walk func(cmd *command, words []string)
	walk = func(cmd *command, words []string) {
		switch strings.ToLower(cmd.Full) {
		case "quit", "shutdown", "client|reply", "monitor", "subscribe", "psubscribe", "reset", "multi", "client|kill",
			"debug|sleep", "client|pause":
			return // these commands leave the connection in another state
		}
		for _, e := range cmd.shown {
			words := strings.Fields(e.send)
			try(words)
			try(append(words, "?!"))
		}
		least := max(cmd.arity, -cmd.arity)
		filled := append([]string(nil), words...)
		for len(filled) < least {
			filled = append(filled, "1")
		}
		try(filled)
		try(append(filled, "?!", "?!"))
		for _, sub := range cmd.subs {
			walk(sub, append(words[:len(words):len(words)], sub.name))
		}
	}
	for _, cmd := range newCommandTable(families()...).all {
		walk(cmd, []string{cmd.name})
	}
	require.Greater(t, tried, 1000)
}

func TestDidYouMean(t *testing.T) {
	c := defaultClient(t)
	for _, name := range []string{"api", "api-v2", "chat"} {
		require.Equal(t, "1", c.say("RL.POLICY SET "+name+" LIMIT TOKENBUCKET 1/s 5"))
	}
	for send, want := range map[string]string{
		"RL.TOKENBUKET k 1 1": "-ERR unknown command 'RL.TOKENBUKET', with args beginning with: 'k' " +
			"'1' '1'  (did you mean RL.TOKENBUCKET?)",
		"rl.tokenbukcet":            "(did you mean RL.TOKENBUCKET?)",
		"tokenbucket k 1 1":         "(did you mean RL.TOKENBUCKET?)",
		"RL_CHECK api 1":            "(did you mean RL.CHECK?)",
		"CLIENT LSIT":               "-ERR unknown subcommand 'LSIT'. Try CLIENT HELP. (did you mean LIST?)",
		"RL.POLICY DELETE api":      "Try RL.POLICY HELP.",
		"RL.EXPLAIN RL.FIXD k 1m 1": "(did you mean RL.FIXED?)",
		"RL.CHECK apy 1": "-ERR there is no policy 'apy', RL.POLICY LIST names them all (did " +
			"you mean api?)",
		"RL.POLICY GET caht":               "(did you mean chat?)",
		"RL.EXPLAIN RL.CHECK api-v1 k":     "(did you mean api-v2?)",
		"RL.CHECK API 1":                   "(did you mean api?)",
		"RL.CHECK api 1 nothing-like-it 2": "-ERR there is no policy 'nothing-like-it', RL.POLICY LIST names them all",
	} {
		require.Contains(t, c.say(send), want, send)
	}
	require.NotContains(t, c.say("RL.CHECK nothing-like-it 2"), "did you mean")
	require.NotContains(t, c.say(strings.Repeat("R", 33)+" 2"), "did you mean")
}

// TestDidYouMeanOnlyWhatOneMay checks that suggestions only contain names which the user may see. A client that has
// not logged in gets no suggestion.
func TestDidYouMeanOnlyWhatOneMay(t *testing.T) {
	srv, _ := usersServer(t, "", "user seer on "+hashOf("ps")+" ~* +rl.check +rl.policy\nuser decider on "+
		hashOf("pd")+" ~* +rl.check\n")
	unauthenticated := srv.client(t)
	require.Equal(t, "-"+string(service.ErrNoAuth), unauthenticated.say("RL.CHEK k 1 1"))
	require.Equal(t, "-"+string(service.ErrNoAuth), unauthenticated.say("CLIENT LSIT"))
	seer, decider := srv.client(t).as("seer", "ps"), srv.client(t).as("decider", "pd")
	require.Equal(t, "1", seer.say("RL.POLICY SET api LIMIT TOKENBUCKET 1/s 5"))
	require.Contains(t, seer.say("RL.CHECK apy k"), "(did you mean api?)")
	require.NotContains(t, decider.say("RL.CHECK apy k"), "did you mean")
	require.Contains(t, decider.say("RL.CHEK api k"), "(did you mean RL.CHECK?)")
	require.NotContains(t, decider.say("RL.STRKE api k"), "did you mean")
}
