package clienttest

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clusterClient is a client library in its cluster mode. send uses the library's function for any command. It is safe
// for concurrent use.
type clusterClient interface {
	// send sends one command, or several as a pipeline, and returns an answer for each.
	send(commands [][]string) []answer
	close()
}

// clientKind describes a client library and how it behaves in a cluster.
type clientKind struct {
	name string
	// dial connects with the library's defaults. seeds are the addresses of some nodes.
	dial func(t *testing.T, seeds []string) clusterClient
	// callers is the number of goroutines that use one client at a time, 1 if the library is not safe for more.
	callers int
	// resends: the client itself resends a command after it lost the connection. Without an ID the command may then
	// count twice.
	resends bool
	// learns: the client needs the address of one node only, whether or not that node leads. With --redirect=moved the
	// test gives it the address of the node that will lead and be killed.
	learns bool
	// keyless: the client does not know which argument of weir's commands is the key. It sends a command to any primary
	// and follows the redirect. It sends a pipeline to one primary, so the keys of a pipeline must be of one group.
	keyless bool
	// oneError: an error reply to one command of a pipeline is the client's answer to all commands of the pipeline.
	oneError bool
	// remembersDeath: for up to a second after the node is back, the client returns the error of a refused connection
	// without a new attempt.
	remembersDeath bool
	// stateless: the client does not remember the leader from one call to the next.
	stateless bool
	// sentinel: the client finds the leader through SENTINEL instead. hears: it goes to a new leader although the old
	// one still answers, because it listens to +switch-master.
	sentinel, hears bool
	// complaints returns the lines that the library has logged since the last call. It is nil for a library that logs
	// nothing. lost reports whether a line is about lost connections.
	complaints func() []string
	lost       func(line string) bool
}

// quiet checks that the client has logged nothing. While a node is dead, lines about lost connections are allowed.
func (k clientKind) quiet(t *testing.T, dead bool) {
	t.Helper()
	if k.complaints == nil {
		return
	}
	assert.Empty(t, slices.DeleteFunc(k.complaints(), func(line string) bool { return dead && k.lost(line) }),
		"the client's log")
}

func TestClusterClients(t *testing.T) {
	for _, kind := range goClusterClients(t) {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel() // each test mostly waits for elections and disks
			testClusterClient(t, kind)
		})
	}
}

// testClusterClient runs the tests that every client must pass in its cluster mode.
func testClusterClient(t *testing.T, kind clientKind) {
	if kind.sentinel {
		testSentinel(t, kind)
		return
	}
	for _, redirect := range []string{"forward", "moved"} {
		t.Run(redirect, func(t *testing.T) { testFollowsLeader(t, kind, redirect) })
	}
	for _, redirect := range []string{"forward", "moved"} {
		t.Run("groups-"+redirect, func(t *testing.T) { testFollowsLeaders(t, kind, redirect) })
	}
	t.Run("LostReply", func(t *testing.T) { testLostReply(t, kind) })
}

// testFollowsLeader changes the leader while a client counts units: by a transfer, by a kill, and by a transfer back
// to the node that was killed. Without redirects, the first transfer is left out.
func testFollowsLeader(t *testing.T, kind clientKind, redirect string) {
	c := startCluster(t, nil, "--redirect", redirect)
	victim := c.leader()
	seeds := c.addrs(nodeIDs...)
	if redirect == "moved" {
		victim = c.other(victim)
		if kind.learns {
			seeds = c.addrs(victim)
		}
	}
	client := kind.dial(t, seeds)
	defer client.close()
	speakInCluster(t, client, !kind.oneError)
	l := c.newLoad(client, kind, c.prefixes()...)
	settled := func() {
		t.Helper()
		if !kind.stateless {
			l.reaches(t, c, c.leader())
		}
	}
	handOver := func() {
		t.Helper()
		c.transfer(victim)
		if redirect == "moved" { // with forwarding the client may stay at its node
			settled()
		}
	}
	l.during(t, "at the start", settled)
	if redirect == "moved" {
		l.during(t, "leadership was transferred", handOver)
	}
	l.counted(t, c)
	kind.quiet(t, false)

	l.survives(t, c, kind, victim, settled)
	l.during(t, "leadership is handed back", handOver)
	l.worries.expectDeath(false)
	l.counted(t, c)
	l.takeRest(t, c)
	kind.quiet(t, false)
}

// TestSentinelClient runs alone, because all clients of go-redis share one log.
func TestSentinelClient(t *testing.T) {
	hook := new(logHook)
	redis.SetLogger(hook)
	testSentinel(t, clientKind{dial: dialGoRedisSentinel, callers: 4, resends: true, hears: true,
		complaints: hook.take, lost: func(string) bool { return true }})
}

// testSentinel changes the leader as testFollowsLeader does, for a client that asks the nodes as Sentinels.
func testSentinel(t *testing.T, kind clientKind) {
	c := startCluster(t, nil)
	victim := c.other(c.leader())
	client := kind.dial(t, c.addrs(nodeIDs...))
	defer client.close()
	l := c.newLoad(client, kind, c.prefixes()...)
	settled := func() { l.reaches(t, c, c.leader()) }
	l.during(t, "at the start", settled)
	l.worries.expectDeath(true) // the client itself closes its connections to the old leader
	l.during(t, "leadership was transferred", func() {
		c.transfer(victim)
		if kind.hears {
			settled()
		}
	})
	l.survives(t, c, kind, victim, settled)
	l.worries.expectDeath(false)
	l.counted(t, c)
	l.takeRest(t, c)
	kind.quiet(t, true)
}

// survives checks that the client goes on while a leader is killed and comes back. settled waits until the client knows
// the new leader.
func (l *load) survives(t *testing.T, c *cluster, kind clientKind, victim string, settled func()) {
	t.Helper()
	l.worries.expectDeath(true)
	l.during(t, "the leader is killed", func() {
		c.nodes[victim].kill()
		settled()
	})
	l.counted(t, c)
	l.during(t, "it comes back", func() {
		c.nodes[victim].Start()
		c.awaitReady(victim)
	})
	l.worries.expectDeath(kind.remembersDeath)
	kind.quiet(t, true)
}

// reaches waits until the client sends commands to the leader and to no other node.
func (l *load) reaches(t *testing.T, c *cluster, leader string) {
	t.Helper()
	until(t, "the client does not go to the leader", func() bool {
		before, strays := c.nodes[leader].calls(), c.strays(leader)
		l.goesOn(t)
		return c.strays(leader) == strays && c.nodes[leader].calls() > before
	})
}

// speakInCluster sends commands of every kind, first one by one, and then as a pipeline if pipelines is set. It leaves
// out replies that contain a time, because the cluster has no test clock. An election on a busy machine may interrupt
// it. It then resets its keys and begins again.
func speakInCluster(t *testing.T, client clusterClient, pipelines bool) {
	t.Helper()
	number := func(n string) json.Number { return json.Number(n) }
	list := func(numbers ...string) (reply []any) {
		for _, n := range numbers {
			reply = append(reply, number(n))
		}
		return reply
	}
	checks := []vector{
		{Send: []string{"RL.FIXED", "fixed", "FOREVER", "9"}, Reply: list("1", "8", "0", "-1", "9")},
		{Send: []string{"RL.FIXED", "fixed", "FOREVER", "9", "COST", "20", "PARTIAL"},
			Reply: list("8", "0", "0", "-1", "9")},
		{Send: []string{"RL.REFUND", "fixed", "4"}, Reply: number("4")},
		{Send: []string{"RL.TOKENBUCKET", "bucket", "10/s", "100", "COST", "101"},
			Reply: list("0", "100", "-1", "0", "100")},
		{Send: []string{"RL.TOKENBUCKET", "bucket", "fast", "100"}, Error: "not 'fast'"},
		{Send: []string{"RL.TOKENBUCKET", "bucket"}, Error: "wrong number of arguments"},
		{Send: []string{"RL.TOKENBUCKET", "fixed", "10/s", "100"}, Error: "WRONGTYPE"},
		{Send: []string{"RL.ACQUIRE", "job", "2", "0", "HOLDER", "h"},
			Reply: append(list("1", "1", "0", "-1", "2"), "h")},
		{Send: []string{"RL.RELEASE", "job", "h"}, Reply: number("1")},
		{Send: []string{"RL.BLOCK", "abuser", "FOREVER"}, Reply: "OK"},
		{Send: []string{"RL.UNBLOCK", "abuser"}, Reply: number("1")},
		{Send: []string{"CL.THROTTLE", "cell", "15", "30", "60"}, Reply: list("0", "16", "15", "-1", "2")},
		{Send: []string{"RL.INSPECT", "nobody"}, Map: map[string]any{}},
		{Send: []string{"RL.RESET", "fixed"}, Reply: number("1")},
	}
	until(t, "the cluster interrupts the commands again and again", func() bool {
		err := speakOnce(t, client, checks, pipelines)
		if err == nil {
			return true
		}
		t.Logf("the commands begin again after %v", err)
		for _, key := range []string{"fixed", "bucket", "job", "abuser", "cell"} {
			for _, undo := range []string{"RL.UNBLOCK", "RL.RESET"} {
				until(t, key+" is not reset", func() bool {
					a := client.send([][]string{{undo, key}})[0]
					require.True(t, a.err == nil || isRetriable(a.err), "%s %s: %v", undo, key, a.err)
					return a.err == nil
				})
			}
		}
		return false
	})
}

// speakOnce sends the commands of speakInCluster and checks the replies. It returns the first retriable error.
func speakOnce(t *testing.T, client clusterClient, checks []vector, pipelines bool) error {
	t.Helper()
	commands := make([][]string, len(checks))
	for i, v := range checks {
		commands[i] = v.Send
		a := client.send(commands[i : i+1])[0]
		if isRetriable(a.err) {
			return a.err
		}
		require.Empty(t, v.check(a.reply, a.err))
	}
	if !pipelines {
		return nil
	}
	// The commands have undone their effects, so the pipeline gets the same replies. It leaves out the last three.
	answers := client.send(commands[:len(commands)-3])
	for _, a := range answers {
		if isRetriable(a.err) {
			return a.err
		}
	}
	for i, a := range answers {
		assert.Empty(t, checks[i].check(a.reply, a.err), "pipelined")
	}
	return nil
}
