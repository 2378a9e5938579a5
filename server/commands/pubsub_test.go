package commands

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/service"
)

func TestDenialEvents(t *testing.T) {
	srv := newTestServer(t, Config{})
	two, three, actor := srv.client(t), srv.client(t), srv.client(t)
	assert.Equal(t, "subscribe weir:denied:fixed 1; subscribe other 2", two.say("SUBSCRIBE weir:denied:fixed other"))
	three.say("HELLO 3")
	assert.Equal(t, ">3\r\n$10\r\npsubscribe\r\n$13\r\nweir:denied:*\r\n:1\r\n",
		three.raw("PSUBSCRIBE", "weir:denied:*"))

	actor.say("RL.FIXED door FOREVER 1")
	assert.Empty(t, two.fake.messages(), "no event before the first denial")
	actor.say("RL.FIXED door FOREVER 1 COST 0")
	actor.say("RL.EXPLAIN RL.FIXED door FOREVER 1")
	assert.Empty(t, two.fake.messages(), "a dry run must not publish an event")
	actor.say("RL.FIXED door FOREVER 1")
	assert.Equal(t, "*3\r\n$7\r\nmessage\r\n$17\r\nweir:denied:fixed\r\n$4\r\ndoor\r\n", two.fake.messages())
	assert.Equal(t, ">4\r\n$8\r\npmessage\r\n$13\r\nweir:denied:*\r\n$17\r\nweir:denied:fixed\r\n$4\r\ndoor\r\n",
		three.fake.messages())

	actor.say("RL.TOKENBUCKET b 1/s 1 COST 2")
	assert.Empty(t, two.fake.messages(), "a channel must only carry the denials of its algorithm")
	assert.Contains(t, three.fake.messages(), "weir:denied:tokenbucket")
	actor.say("MULTI")
	actor.say("CL.THROTTLE b 0 1 60 2")
	actor.say("EXEC")
	assert.Contains(t, three.fake.messages(), "weir:denied:tokenbucket")

	two.sess.Close()
	three.say("PUNSUBSCRIBE")
	actor.say("RL.FIXED door FOREVER 1")
	assert.Empty(t, two.fake.messages()+three.fake.messages())
	assert.Zero(t, srv.Events.Listeners.Load())
}

// TestEventsOfOwnKeys checks that a user with patterns of keys hears nothing about other keys, also after another user
// has subscribed on the same connection.
func TestEventsOfOwnKeys(t *testing.T) {
	srv, _ := usersServer(t, "", "user boss on nopass ~* +@all\nuser app on nopass ~app:* +@all\n")
	actor, boss, app := srv.client(t).as("boss", "x"), srv.client(t).as("boss", "x"), srv.client(t).as("app", "x")
	changed := srv.client(t).as("boss", "x")
	changed.say("HELLO 3")
	for _, c := range []*testClient{boss, app, changed} {
		c.say("PSUBSCRIBE weir:*")
	}
	changed.as("app", "x")
	changed.fake.messages()
	actor.say("RL.POLICY SET p LIMIT STRIKE 1m 1 10m")
	for _, key := range []string{"app:1", "other:1"} {
		for _, send := range []string{"RL.FIXED %s 1m 1", "RL.STRIKE strike:%s 1m 1 10m", "RL.CHECK p %s"} {
			for range 2 {
				actor.say(strings.ReplaceAll(strings.ReplaceAll(send, "strike:%s", key+":strike"), "%s", key))
			}
		}
	}
	const each = 7 // five denials and two lock-outs
	assert.Equal(t, 2*each, strings.Count(boss.fake.messages(), "pmessage"))
	for _, c := range []*testClient{app, changed} {
		got := c.fake.messages()
		assert.Equal(t, each, strings.Count(got, "pmessage"), got)
		assert.NotContains(t, got, "other")
	}
}

// TestDenialEventsOfPolicies checks that the channel belongs to the policy that binds, in any order of subscriptions.
// The number of channels never exceeds the possible number of policies.
func TestDenialEventsOfPolicies(t *testing.T) {
	srv := newTestServer(t, Config{})
	before, after, actor := srv.client(t), srv.client(t), srv.client(t)
	message := func(key string) string {
		return "*3\r\n$7\r\nmessage\r\n$23\r\nweir:denied:policy:chat\r\n$2\r\n" + key + "\r\n"
	}
	actor.say("RL.POLICY SET chat LIMIT FIXED FOREVER 1")
	actor.say("RL.POLICY SET bot LIMIT FIXED FOREVER 2")
	before.say("SUBSCRIBE weir:denied:policy:chat")
	actor.say("RL.CHECK bot all chat 42")
	actor.say("RL.CHECK bot all chat 42 COST 0")
	actor.say("RL.EXPLAIN RL.CHECK bot all chat 42")
	assert.Empty(t, before.fake.messages(), "no event before the first denial")
	actor.say("RL.CHECK bot all chat 42")
	assert.Equal(t, message("42"), before.fake.messages())
	after.say("PSUBSCRIBE weir:denied:policy:*")
	actor.say("RL.BLOCK 43 1h")
	actor.say("RL.CHECK bot all chat 43")
	assert.Equal(t, message("43"), before.fake.messages(), "a denial by a block must publish an event")
	actor.say("RL.RESERVE chat 42 1 1m")
	assert.Equal(t, message("42"), before.fake.messages(), "a denied hold must publish an event")
	assert.Contains(t, after.fake.messages(), "weir:denied:policy:chat")
	actor.say("RL.CHECK chat 44 bot all COST 2")
	actor.say("RL.CHECK bot all COST 3")
	assert.Equal(t, message("44"), before.fake.messages())
	assert.Contains(t, after.fake.messages(), "weir:denied:policy:bot")

	hub := srv.Events
	deny := func(policy, key string) {
		hub.Denied(&engine.Op{Code: engine.OpCheck, Text: []byte(policy), Key: []byte(key)}, new(engine.Decision))
	}
	for i := range 2*service.MaxPolicyChannels + 1 {
		deny(strconv.Itoa(i), "k")
		assert.LessOrEqual(t, len(hub.Policies), service.MaxPolicyChannels)
	}
	after.fake.messages()
	deny("chat", "45")
	assert.Equal(t, message("45"), before.fake.messages(), "a forgotten channel must work again")
	before.sess.Close()
	after.say("PUNSUBSCRIBE")
	after.fake.messages()
	actor.say("RL.CHECK chat 42")
	assert.Empty(t, before.fake.messages()+after.fake.messages())
	assert.Empty(t, hub.All)
}

func TestSubscriptions(t *testing.T) {
	c := defaultClient(t)
	assert.Equal(t, "unsubscribe nil 0", c.say("UNSUBSCRIBE"))
	assert.Equal(t, "subscribe a 1; subscribe a 1; subscribe b 2", c.say("SUBSCRIBE a a b"))
	assert.Equal(t, "psubscribe a 3", c.say("PSUBSCRIBE a"))
	assert.Equal(t, "pong ", c.say("PING"))
	assert.Equal(t, "pong hi", c.say("PING hi"))
	for _, line := range []string{"RL.FIXED k 1m 5", "ECHO x", "CLIENT ID"} {
		assert.Contains(t, c.say(line), "-ERR Can't execute '", line)
	}
	assert.Contains(t, c.say("ECHO x"),
		"only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")

	srv := &testServer{Shared: c.sess.srv, last: 1}
	other := srv.client(t)
	assert.Equal(t, "a b", other.say("PUBSUB CHANNELS"))
	assert.Equal(t, "b", other.say("PUBSUB CHANNELS [b-z]"))
	assert.Equal(t, "a 1 x 0", other.say("PUBSUB NUMSUB a x"))
	assert.Equal(t, "1", other.say("PUBSUB NUMPAT"))
	assert.Contains(t, other.say("CLIENT LIST TYPE pubsub"), "flags=P db=0 sub=2 psub=1")

	assert.Equal(t, "unsubscribe a 2; unsubscribe b 1", c.say("UNSUBSCRIBE"))
	assert.Equal(t, "punsubscribe a 0", c.say("PUNSUBSCRIBE a"))
	assert.Equal(t, "x", c.say("ECHO x"))
}

func TestSubscriptionsAreBounded(t *testing.T) {
	c := defaultClient(t)
	for i := range service.MaxTopics {
		c.say("PSUBSCRIBE *" + decimal(int64(i)))
	}
	assert.Equal(t, "-"+string(errTooManyTopics), c.say("SUBSCRIBE more"))
	assert.Equal(t, "-"+string(errPatternLong), c.say("PSUBSCRIBE "+strings.Repeat("*", 513)))
}

func TestMonitor(t *testing.T) {
	srv := newTestServer(t, Config{Password: "secret"})
	watcher, actor := srv.client(t), srv.client(t)
	watcher.say("AUTH secret")
	assert.Equal(t, "OK", watcher.say("MONITOR"))
	actor.say("HELLO 3 AUTH default secret")
	actor.say("AUTH secret")
	actor.raw("RL.TOKENBUCKET", "a\nb\"", "10/s", "5")
	actor.say("NOPE secret")
	seen := watcher.fake.messages()
	assert.Regexp(t, `^\+\d+\.\d{6} \[0 127\.0\.0\.1:40002\] "HELLO" "\(redacted\)"\r\n`, seen)
	assert.Contains(t, seen, `"AUTH" "(redacted)"`)
	assert.Contains(t, seen, `"RL.TOKENBUCKET" "a\nb\"" "10/s" "5"`)
	assert.NotContains(t, seen, "secret")
	assert.Contains(t, watcher.say("CLIENT LIST"), "flags=O")
	watcher.say("RESET")
	watcher.fake.messages()
	actor.say("PING")
	assert.Empty(t, watcher.fake.messages())
}
