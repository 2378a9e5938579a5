package commands

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/commands.md, and the list in docs/metrics.md")

const referenceFile = "../../docs/commands.md"

// contents matches the table of contents that internal/pages writes and tests.
var contents = regexp.MustCompile(`(?s)(<!-- contents -->\n).*?(<!-- /contents -->\n)`)

// TestReference compares docs/commands.md with the command table. With -update it writes the page.
func TestReference(t *testing.T) {
	text := referencePage()
	if *update {
		require.NoError(t, os.WriteFile(referenceFile, []byte(text), 0o644))
		return
	}
	file, err := os.ReadFile(referenceFile)
	require.NoError(t, err)
	assert.Equal(t, text, contents.ReplaceAllString(string(file), "$1$2"),
		"docs/commands.md is out of date: run make docs")
}

func TestHelp(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, WriteHelp(&text, "rl.tokenbucket"))
	assert.True(t, strings.HasPrefix(text.String(), "### RL.TOKENBUCKET\n\nAdmit bursts"), text.String())
	text.Reset()
	require.NoError(t, WriteHelp(&text, "client LIST"))
	assert.Contains(t, text.String(), "CLIENT LIST [TYPE type] [ID id ...]")
	text.Reset()
	require.NoError(t, WriteHelp(&text, ""))
	assert.Equal(t, len(newCommandTable(families()...).all), strings.Count(text.String(), "\n"))
	assert.ErrorIs(t, WriteHelp(&text, "LPUSH"), ErrNoCommand)
	assert.ErrorIs(t, WriteHelp(&text, "client nope"), ErrNoCommand)
}

// each visits every command and subcommand.
func each(commands []*command, visit func(*command)) {
	for _, cmd := range commands {
		visit(cmd)
		each(cmd.subs, visit)
	}
}

func TestTableIsComplete(t *testing.T) {
	table := newCommandTable(families()...)
	names, slots := map[string]bool{}, map[int]bool{}
	chapters := map[string]bool{}
	for _, chapter := range referenceChapters {
		chapters[chapter.group] = true
	}
	each(table.all, func(cmd *command) {
		assert.False(t, names[cmd.Full] || slots[cmd.Slot], cmd.Full)
		names[cmd.Full], slots[cmd.Slot] = true, true
		assert.NotEmpty(t, cmd.summary, cmd.Full)
		assert.NotZero(t, cmd.arity, cmd.Full)
		assert.True(t, chapters[cmd.group], "%s: %q", cmd.Full, cmd.group)
		assert.Equal(t, cmd.plan == nil, cmd.answer == nil, cmd.Full)
		assert.True(t, cmd.plan != nil || cmd.read.run != nil || cmd.run != nil || cmd.subs != nil, cmd.Full)
		assert.Equal(t, cmd.subs == nil && cmd.has("readonly"), cmd.read.run != nil, cmd.Full)
		assert.LessOrEqual(t, len(cmd.name), maxNameBytes)
		assert.True(t, !cmd.instant || cmd.Exempt && cmd.plan == nil,
			"%s must not be instant, because a pause delays it", cmd.Full)
		for _, text := range append([]string{cmd.summary, cmd.details, cmd.reply}, cmd.syntax) {
			assert.Equal(t, strings.TrimSpace(text), text, cmd.Full)
		}
		assert.False(t, strings.HasSuffix(cmd.summary, "."), cmd.Full)
		if cmd.group == groupDecide {
			assert.NotEmpty(t, cmd.shown, cmd.Full)
			assert.NotEmpty(t, cmd.details, cmd.Full)
		}
	})
	assert.Len(t, slots, len(table.bySlot))
}

func TestFindIgnoresCaseAndLength(t *testing.T) {
	table := newCommandTable(families()...)
	assert.Equal(t, "PING", table.find([]byte("pInG")).name)
	assert.Nil(t, table.find([]byte("")))
	assert.Nil(t, table.find(bytes.Repeat([]byte("x"), 10_000)))
	assert.Zero(t, testing.AllocsPerRun(100, func() { table.find([]byte("rl.slidingcounter")) }))
}

func TestCommandCommand(t *testing.T) {
	c := defaultClient(t)
	n := len(c.sess.srv.table.all)
	assert.Equal(t, decimal(int64(n)), c.say("COMMAND COUNT"))
	assert.Len(t, c.value("COMMAND").items, n)
	assert.Len(t, c.value("COMMAND INFO").items, n)
	assert.Len(t, c.value("COMMAND LIST").items, n)

	info := c.value("COMMAND INFO rl.TOKENBUCKET client|list nope").items
	require.Len(t, info, 3)
	bucket := info[0].items
	require.Len(t, bucket, 10)
	assert.Equal(t, "rl.tokenbucket", bucket[0].text)
	assert.Equal(t, "-4", bucket[1].text)
	assert.Equal(t, "write denyoom fast", bucket[2].flat())
	assert.Equal(t, "1 1 1", bucket[3].text+" "+bucket[4].text+" "+bucket[5].text)
	assert.Equal(t, "@decide @write @fast @ratelimit", bucket[6].flat())
	assert.Equal(t, "flags RW ACCESS UPDATE begin_search type index spec index 1 find_keys type range spec lastkey "+
		"0 keystep 1 limit 0", bucket[8].flat())
	assert.Equal(t, "client|list", info[1].items[0].text)
	assert.Equal(t, "nil", info[2].flat())

	assert.Contains(t, c.say("COMMAND LIST FILTERBY ACLCAT ratelimit"), "rl.acquire")
	assert.NotContains(t, c.say("COMMAND LIST FILTERBY ACLCAT ratelimit"), "ping")
	assert.Equal(t, "rl.reserve rl.release rl.renew rl.refund rl.reset", c.say("COMMAND LIST FILTERBY PATTERN rl.re*"))
	assert.Equal(t, "", c.say("COMMAND LIST FILTERBY MODULE x"))
	assert.Equal(t, "-ERR syntax error: COMMAND LIST [FILTERBY ACLCAT category|PATTERN pattern|MODULE name]",
		c.say("COMMAND LIST FILTERBY x y"))
}

func TestGetKeys(t *testing.T) {
	c := defaultClient(t)
	for _, test := range []struct{ send, want string }{
		{"rl.tokenbucket k 10/s 5", "k"}, {"DEL a b c", "a b c"}, {"RL.EXPLAIN RL.FIXED k 1m 5", "k"},
		{"MEMORY USAGE k", "k"},
		{"PING", "-ERR The command has no key arguments"},
		{"LPUSH k", "-ERR Invalid command specified: command must be one of COMMAND LIST, not 'LPUSH'"},
		{"RL.FIXED k", "-ERR Invalid number of arguments specified for command: it must be RL.FIXED key " +
			"window|DAY|WEEK|MONTH|YEAR|FOREVER max [COST n] [PARTIAL] [FIRST] [TZ zone] [FROM address] [ID token]"},
		{"RL.WAIT RL.TOKENBUCKET k 10/s 5 TIMEOUT 1s", "k"}, {"RL.WAIT RL.CHECK p k q j COST 2 TIMEOUT 1s", "k j"},
		{"RL.CHECK p k PARTIAL", "k"},
		{"XREAD COUNT 2 BLOCK 0 STREAMS weir:events:0 weir:events:1 0 $", "weir:events:0 weir:events:1"},
		{"XREAD STREAMS weir:events 0 0", "-ERR Unbalanced 'xread' list of streams: for each stream key an ID, '+', " +
			"or '$' must be specified."},
		{"RL.RESERVE p k 5 1m", "k"}, {"RL.RESERVE p k 5 1m ID x", "k"},
		{"RL.RESERVE p k 5 1m AND q j r i PRIORITY high", "k j i"},
		{"RL.RESERVE p k 5 1m AND q j", "k j"}, {"RL.RESERVE p k 5 1m AND q", "k"},
		{"RL.EXPLAIN RL.CHECK p k", "k"}, {"RL.EXPLAIN EVALSHA " + strings.Repeat("0", 40) + " 1 k 5", "k"},
		{"RL.WAIT PING now TIMEOUT 1s", "-ERR The command has no key arguments"}, {"RL.WAIT NOPE now TIMEOUT 1s",
			"-ERR Invalid command specified: command must be one of COMMAND LIST, not 'NOPE'"},
	} {
		assert.Equal(t, test.want, c.say("COMMAND GETKEYS "+test.send), test.send)
	}
	assert.Equal(t, "a RW ACCESS UPDATE b RW ACCESS UPDATE", c.say("COMMAND GETKEYSANDFLAGS DEL a b"))
	assert.Equal(t, "a RO ACCESS", c.say("COMMAND GETKEYSANDFLAGS TTL a"))
	assert.Equal(t, "k RW ACCESS UPDATE", c.say("COMMAND GETKEYSANDFLAGS RL.WAIT RL.CHECK p k TIMEOUT 1s"))
	assert.Equal(t, "k RO ACCESS", c.say("COMMAND GETKEYSANDFLAGS RL.EXPLAIN RL.CHECK p k"))
	// The key specification must be that of the carried command.
	for _, carrier := range c.value("COMMAND INFO RL.WAIT RL.EXPLAIN").items {
		assert.Contains(t, carrier.items[2].flat(), "movablekeys")
		assert.Equal(t, "0 0 0", carrier.items[3].text+" "+carrier.items[4].text+" "+carrier.items[5].text)
		assert.Empty(t, carrier.items[8].items)
	}
}

func TestCommandDocs(t *testing.T) {
	c := defaultClient(t)
	assert.Len(t, c.value("COMMAND DOCS").items, 2*len(c.sess.srv.table.all))
	assert.Equal(t, "", c.say("COMMAND DOCS nope"))
	docs := c.value("COMMAND DOCS rl.strike").get("rl.strike")
	assert.Equal(t, "Count failures and deny with growing penalties", docs.get("summary").text)
	assert.Equal(t, "decisions", docs.get("group").text)
	assert.Equal(t, since, docs.get("since").text)
	c.say("HELLO 3")
	assert.Equal(t, "name key type key key_spec_index 0 name holder type string name token type string token ID",
		strings.Join(strings.Fields(c.value("COMMAND DOCS rl.release").get("rl.release").get("arguments").flat())[:16],
			" "))
}
