package commands

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/server/acl"
	"github.com/weir-project/weir/server/servertest"
)

// forEveryClient are the categories that the documents give to applications.
const forEveryClient = "+@decide +@connection +@transaction"

// totals are the commands that show numbers about the whole server: clients, keys, memory, time.
var totals = []string{"info", "time", "lastsave", "client|info", "client|id", "acl|genpass"}

// TestNoKeyOfOthersIsVisible checks that a user of an application can neither list nor see keys outside its patterns.
// The same random commands, from the whole command table, go to two servers. One has keys of another application. The
// replies must not differ.
func TestNoKeyOfOthersIsVisible(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) { compareViews(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

// compareViews sends the same random commands to a server with keys of others and to one without.
func compareViews(t *testing.T, random *rand.Rand) {
	with, without := visibleFrom(t, true), visibleFrom(t, false)
	for range 4000 {
		send := anyCommand(random, with.sess.srv.table)
		require.Equal(t, without.raw(send...), with.raw(send...), "%q", send)
		require.Equal(t, without.fake.messages(), with.fake.messages(), "%q", send)
		if with.sess.Closing || with.sess.Mute != MuteNone {
			with, without = sameServer(t, with), sameServer(t, without)
		}
	}
}

// visibleFrom returns a client of a user with a pattern of keys, at the leader of a cluster. If others is set, other
// applications have keys in every state, and the same keys are denied and blocked.
func visibleFrom(t *testing.T, others bool) *testClient {
	t.Helper()
	f := servertest.NewFakeCluster()
	boss, _ := clusterClient(t, f, "a", Config{EnableDebug: true, LoadUsers: func() (*acl.Users, error) {
		return ParseUsers([]byte("user boss on nopass ~* +@all\nuser app on nopass ~app:* " + forEveryClient + "\n"))
	}})
	boss.as("boss", "x")
	for _, send := range []string{
		"RL.POLICY SET p LIMIT FIXED 1d 3", "RL.POLICY SET named LIMIT FIXED 1d 3 LAYOUT app:{policy}:{key}",
		"RL.FIXED app:mine 1d 3", "RL.CHECK p app:mine",
	} {
		require.NotContains(t, boss.say(send), "-", send)
	}
	if others {
		for _, send := range []string{
			"RL.FIXED theirs 1d 3", "RL.FIXED theirs 1d 3 COST 9", "RL.CHECK p theirs", "RL.CHECK named theirs",
			"SET value secret", "INCR counter", "RL.ACQUIRE slots 3 1h HOLDER me",
			"RL.RESERVE p theirs 1 1h ID hold", "RL.BLOCK blocked 1h REASON secret",
			"RL.POLICY OVERRIDE p theirs LIMIT FIXED 1d 9",
		} {
			require.NotContains(t, boss.say(send), "-ERR", send)
		}
	}
	return sameServer(t, boss)
}

func sameServer(t *testing.T, c *testClient) *testClient {
	t.Helper()
	return (&testServer{Shared: c.sess.srv}).client(t).as("app", "x")
}

// anyCommand returns a command of the table with arguments that its syntax names, and others.
func anyCommand(random *rand.Rand, table *commandTable) []string {
	words := []string{"theirs", "app:mine", "app:named:theirs", "value", "counter", "slots", "hold", "blocked",
		"app:new", "p", "named", "policy|p|0|theirs", "policy|named|0|theirs", "*", "0", "1", "3", "1d", "FIXED", "me", "5000",
		"10000", "ON", "weir:denied:*", "RL.FIXED", "RL.CHECK", "DENIED", "ADMITTED", "-1", "FOREVER"}
	for _, key := range []string{"theirs", "value", "counter", "slots", "blocked"} {
		words = append(words, strconv.Itoa(int(hashslot.Of([]byte(key)))))
	}
	for {
		cmd := table.bySlot[random.IntN(len(table.bySlot))]
		if cmd.parent == nil && len(cmd.subs) > 0 || slices.Contains(totals, cmd.Full) {
			continue
		}
		send := strings.Fields(cmd.title())
		between := func(c rune) bool { return strings.ContainsRune(" []|.", c) }
		for _, word := range strings.FieldsFunc(cmd.syntax, between) {
			if strings.ToUpper(word) != word || random.IntN(4) == 0 {
				word = words[random.IntN(len(words))]
			}
			if random.IntN(4) > 0 {
				send = append(send, word)
			}
		}
		return send
	}
}
