package commands

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/servertest"
)

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := servertest.NewFakeCluster()
		c, _ := clusterClient(t, f, "a", Config{})
		follower, _ := clusterClient(t, f, "b", Config{})
		took := func(c *testClient, send string) (reply string, took time.Duration) {
			start := time.Now()
			reply = c.say(send)
			return reply, time.Since(start)
		}
		for _, test := range []struct {
			name, send, want string
			took             time.Duration
			client           *testClient
		}{
			{"a majority has it already", "WAIT 1 0", "1", 0, c},
			{"b is behind", "WAIT 2 250", "1", 250 * time.Millisecond, c},
			{"there are not so many", "WAIT 9 0", "1", maxWait, c},
			{"no longer than the bound", "WAIT 9 3600000000", "1", maxWait, c},
			{"a follower knows no more", "WAIT 2 5000", "1", 0, follower},
		} {
			reply, d := took(test.client, test.send)
			assert.Equal(t, test.want, reply, test.name)
			assert.Equal(t, test.took, d, test.name)
		}
		for _, wrong := range []string{"WAIT x 0", "WAIT -1 0", "WAIT 1 -1", "WAIT 1 x"} {
			assert.Contains(t, c.say(wrong), "-"+string(arg.ErrNotInteger)+": ", wrong)
		}
		c.say("MULTI")
		c.say("WAIT 2 0")
		reply, d := took(c, "EXEC")
		assert.Equal(t, "1", reply)
		assert.Zero(t, d, "WAIT in a transaction must not wait")

		// Node b catches up during the wait, while the log grows.
		time.AfterFunc(time.Second, func() {
			f.Change(func(t *limiter.Topology) { t.CommitIndex, t.Nodes[1].AppliedIndex = 50, 42 })
		})
		reply, d = took(c, "WAIT 2 0")
		assert.Equal(t, "2", reply)
		assert.InDelta(t, time.Second, d, float64(waitPollMax))

		// Leadership is lost during the wait. The number that WAIT has seen stays valid.
		time.AfterFunc(time.Second, func() { f.Lead("b") })
		f.Change(func(t *limiter.Topology) { t.CommitIndex, t.Nodes[1].AppliedIndex = 42, 42 })
		reply, d = took(c, "WAIT 3 0")
		assert.Equal(t, "2", reply)
		assert.InDelta(t, time.Second, d, float64(waitPollMax))

		f.Lead("a")
		time.AfterFunc(time.Second, func() { stopServing(c.sess.srv) })
		_, d = took(c, "WAIT 3 0")
		assert.Equal(t, time.Second, d, "a server that stops must end every WAIT")
	})
}
