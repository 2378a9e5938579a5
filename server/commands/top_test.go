package commands

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/servertest"
)

func TestTop(t *testing.T) {
	c := defaultClient(t)
	assert.Equal(t, "", c.say("RL.TOP ADMITTED"))
	for i := range 12 {
		c.say(fmt.Sprintf("RL.TOKENBUCKET k%02d 1/s 100 COST %d", i, 20+i))
	}
	assert.Equal(t, "k11 31 0 k10 30 0", c.say("rl.top admitted 2"))
	assert.Len(t, strings.Fields(c.say("RL.TOP ADMITTED")), 3*defaultTop)
	assert.Len(t, strings.Fields(c.say("RL.TOP ADMITTED 1000")), 3*12)
	assert.Equal(t, "", c.say("RL.TOP DENIED"))

	c.say("RL.POLICY SET p LIMIT FIXED FOREVER 5")
	c.say("RL.CHECK p 42 COST 6")
	assert.Equal(t, "policy|p|0|42 6 0", c.say("RL.TOP DENIED"))
	c.say("CONFIG RESETSTAT")
	assert.Equal(t, "policy|p|0|42 6 0", c.say("RL.TOP DENIED"), "CONFIG RESETSTAT must keep the denials")
	c.say("DEBUG CLOCK ADVANCE 60000")
	c.say("FLUSHALL")
	assert.Equal(t, "", c.say("RL.TOP ADMITTED"))
	for send, want := range map[string]string{
		"RL.TOP":                 "-ERR wrong number of arguments for 'rl.top' command: RL.TOP ADMITTED|DENIED [n]",
		"RL.TOP ALL":             "-ERR what to list must be ADMITTED or DENIED, not 'ALL'",
		"RL.TOP DENIED 0":        "-ERR n must be a whole number from 1 to 1000, not '0'",
		"RL.TOP ADMITTED 1001":   "-ERR n must be a whole number from 1 to 1000, not '1001'",
		"RL.TOP ADMITTED ten":    "-ERR n must be a whole number from 1 to 1000, not 'ten'",
		"RL.TOP ADMITTED 10 now": "-" + string(arg.ErrSyntax) + ": RL.TOP ADMITTED|DENIED [n]",
	} {
		assert.Equal(t, want, c.say(send), send)
	}
}

// TestTopInACluster checks that only the leader reports denials, because only the leader records them.
func TestTopInACluster(t *testing.T) {
	f := servertest.NewFakeCluster()
	leader, _ := clusterClient(t, f, "a", Config{})
	follower, _ := clusterClient(t, f, "b", Config{})
	leader.say("RL.FIXED k FOREVER 1")
	leader.say("RL.FIXED k FOREVER 1")
	assert.Equal(t, "k 1 0", leader.say("RL.TOP DENIED"))
	assert.Equal(t, "k 1 0", follower.say("RL.TOP ADMITTED"))
	assert.Equal(t, "-MOVED 0 10.0.0.1:6380", follower.say("RL.TOP DENIED"))
	f.Change(func(t *limiter.Topology) { t.Nodes[0].ClientAddr = "" })
	assert.Contains(t, follower.say("RL.TOP DENIED"), "-CLUSTERDOWN")
	f.Lead("")
	assert.Contains(t, leader.say("RL.TOP DENIED"), "-CLUSTERDOWN")
}
