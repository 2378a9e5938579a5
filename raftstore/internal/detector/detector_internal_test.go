package detector

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestADeadHostLosesItsGroups checks that every group of a host that ended is led again soon after the limit, that each
// holds one election, and that the groups spread over the other hosts.
func TestADeadHostLosesItsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const groups = 8
		c := newCluster(t, 3, groups)
		died := time.Now()
		c.host("A").down = true
		c.run(t.Context(), 4*limit)
		for g := range groups {
			require.Len(t, c.elected(g), 1)
		}
		require.Equal(t, groups/2, c.leads("B"))
		require.Equal(t, groups/2, c.leads("C"))
		for _, e := range c.elections {
			require.Less(t, e.at.Sub(died), limit+3*limit/ticksPerLimit)
			require.Greater(t, e.at.Sub(died), limit-2*limit/pingsPerLimit)
		}
		require.Equal(t, "1 confirmed, 0 not", c.counts("B"))
		require.Equal(t, "1 confirmed, 0 not", c.counts("C"))
	})
}

// cutOff cuts one or both directions between a leader and one other host for ten limits.
func cutOff(t *testing.T, c *cluster, toLeader, fromLeader bool) {
	c.cut("B", "A", toLeader)
	c.cut("A", "B", fromLeader)
	c.run(t.Context(), 10*limit)
}

// TestACutBetweenTwoHosts checks that a cut between a leader and one other host, in one direction or both, deposes no
// leader while a third host hears both.
func TestACutBetweenTwoHosts(t *testing.T) {
	for _, cut := range [][2]bool{{true, false}, {false, true}, {true, true}} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3, 4)
				cutOff(t, c, cut[0], cut[1])
				require.Empty(t, c.elections)
				unconfirmed := c.host("A").Unconfirmed.Load() + c.host("B").Unconfirmed.Load()
				require.Positive(t, unconfirmed)
				require.Zero(t, c.host("C").Unconfirmed.Load())
				c.host("A").down = true
				c.run(t.Context(), 3*limit)
				require.Equal(t, 4, c.leads("B")+c.leads("C"), "a death after the cut is still found")
			})
		})
	}
}

// TestNobodyConfirms checks that a host which hears nobody holds no election, nor one that hears only a host which
// heard the leader.
func TestNobodyConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 4)
		for _, other := range []string{"A", "C"} {
			c.cut("B", other, true)
			c.cut(other, "B", true)
		}
		c.run(t.Context(), 10*limit)
		require.Empty(t, c.elections)
		require.Equal(t, "0 confirmed, 2 not", c.counts("B"))
		require.Equal(t, "1 confirmed, 0 not", c.counts("C"), "A and C agree about B, which leads no group")
	})
}

// TestAPausedHost checks that a host which was paused accuses nobody and confirms nothing, and that the others elect
// leaders while it is paused.
func TestAPausedHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 4)
		c.host("B").paused = true
		c.run(t.Context(), 5*limit)
		require.Empty(t, c.elections)
		c.host("B").paused = false
		require.False(t, c.host("B").answerAbout("A", time.Now()).Silent, "before it looked again")
		c.host("A").paused = true
		c.host("B").looked = time.Time{}.Add(1) // paused until now
		c.run(t.Context(), limit-2*limit/ticksPerLimit)
		require.Empty(t, c.elections, "its measurement started again")
		c.run(t.Context(), 3*limit)
		require.Equal(t, 4, c.leads("B")+c.leads("C"))
		c.host("A").paused = false
		done := len(c.elections)
		c.run(t.Context(), 5*limit)
		require.Len(t, c.elections, done)
		require.Equal(t, "1 confirmed, 0 not", c.counts("A"), "of the pause of B")
	})
}

// TestAPauseEndsASilence checks that a host which was paused during a silence asks no more for it.
func TestAPauseEndsASilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 4)
		c.host("C").paused = true
		c.host("A").down = true
		c.run(t.Context(), 2*limit)
		require.NotNil(t, c.host("B").hosts["A"].silence)
		c.host("B").paused = true
		c.run(t.Context(), limit)
		c.host("B").paused = false
		require.False(t, c.host("B").answerAbout("A", time.Now()).Silent)
		require.Nil(t, c.host("B").hosts["A"].silence)
	})
}

// TestAHostThatComesAndGoes checks that silences shorter than the limit depose nobody, and that a host which is silent
// for longer and returns is deposed once for each silence.
func TestAHostThatComesAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 4)
		flap := func(off time.Duration) {
			c.host("A").paused = true
			c.run(t.Context(), off)
			c.host("A").paused = false
			c.run(t.Context(), limit/2)
		}
		for range 10 {
			flap(limit - 4*limit/ticksPerLimit)
		}
		require.Empty(t, c.elections)
		for i := range 5 {
			for _, g := range c.groups {
				g.leader = "A"
			}
			flap(2 * limit)
			require.Len(t, c.elections, 4*(i+1))
		}
	})
}

// TestTheLongerLogStandsFirst checks that the voter with the longest log stands for election first. If it does not win,
// the other one follows later, and a host does not try without end.
func TestTheLongerLogStandsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 4)
		for _, g := range c.groups {
			g.last = map[string]uint64{"A": 9, "B": 7, "C": 8}
		}
		c.groups[1].broken["C"] = true
		c.groups[2].broken = map[string]bool{"B": true, "C": true}
		c.host("A").down = true
		c.run(t.Context(), 20*limit)
		require.Equal(t, []string{"C"}, c.elected(0))
		require.Equal(t, []string{"C", "B"}, c.elected(1))
		require.Len(t, c.elected(2), 2*maxTries)
		for _, group := range []int{1, 2} {
			require.GreaterOrEqual(t, c.gap(group), limit/staggerFraction, "two voters must not stand at once")
		}
	})
}

// TestAnElectionUnderWay checks that a host waits before it stands for election when the group is in a new term, because
// another voter may have won and not be known yet.
func TestAnElectionUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 1)
		b := c.host("B")
		s := &silence{plans: map[int]*plan{0: {term: 1, due: time.Now()}}}
		c.groups[0].term = 2
		for _, wait := range []time.Duration{0, limit/staggerFraction - 1} {
			time.Sleep(wait)
			b.carryOut(t.Context(), b.hosts["A"], s, time.Now())
			synctest.Wait()
			require.Empty(t, c.elections)
		}
		time.Sleep(time.Nanosecond)
		b.carryOut(t.Context(), b.hosts["A"], s, time.Now())
		synctest.Wait()
		require.Len(t, c.elections, 1)
	})
}

// TestAPlanThatNoLongerApplies checks that a host does not stand for election if it has lost its vote since the plan, or
// if the group has another leader.
func TestAPlanThatNoLongerApplies(t *testing.T) {
	for name, change := range map[string]func(*fakeGroup){
		"no vote":        func(g *fakeGroup) { g.voters = without(g.voters, "B") },
		"another leader": func(g *fakeGroup) { g.leader = "C" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3, 1)
				b, g := c.host("B"), c.groups[0]
				s := &silence{plans: map[int]*plan{0: {term: g.term, due: time.Now()}}}
				change(g)
				b.carryOut(t.Context(), b.hosts["A"], s, time.Now())
				synctest.Wait()
				require.Empty(t, c.elections)
			})
		})
	}
}

// TestOnlyAMajorityOfVotersConfirms checks that a minority that does not hear a leader leaves it alone, and that hosts
// without a vote neither confirm nor stand for election.
func TestOnlyAMajorityOfVotersConfirms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 5, 3)
		c.groups[1].voters = without(c.groups[1].voters, "D", "E")
		c.groups[2].voters = without(c.groups[2].voters, "B", "C", "D")
		for _, minority := range []string{"D", "E"} {
			c.cut("A", minority, true)
			c.cut(minority, "A", true)
		}
		c.run(t.Context(), 5*limit)
		require.Empty(t, c.elections)
		c.host("A").down = true
		c.run(t.Context(), 5*limit)
		require.Len(t, c.elected(0), 1)
		require.Len(t, c.elected(1), 1)
		require.Contains(t, []string{"B", "C"}, c.groups[1].leader)
		require.Empty(t, c.elected(2), "one voter of two is no majority")
	})
}

// TestAHostWithoutADetector checks that a host of an older weir is never accused and confirms nothing.
func TestAHostWithoutADetector(t *testing.T) {
	for _, old := range []string{"A", "C"} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 3, 4)
			c.host(old).old = true
			c.run(t.Context(), 2*limit)
			c.host("A").down = true
			c.run(t.Context(), 5*limit)
			require.Empty(t, c.elections)
		})
	}
}

// TestAHostThatWasNeverHeard checks that a host is not accused before its first sign of life.
func TestAHostThatWasNeverHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, 4)
		c.host("A").down = true
		for _, addr := range []string{"B", "C"} {
			h := c.host(addr)
			h.hosts = map[string]*host{}
		}
		c.run(t.Context(), 5*limit)
		require.Empty(t, c.elections)
		require.Equal(t, "0 confirmed, 0 not", c.counts("B"))
	})
}
