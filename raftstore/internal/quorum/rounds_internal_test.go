package quorum

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/timers"
)

// electorate is a set of voters. n0 has the Rounds under test.
type electorate struct {
	*Rounds
	own   uint64     // the term of n0
	asked [][]string // the nodes that each question went to
	halt  chan struct{}
}

func newElectorate(voters int) *electorate {
	e := &electorate{own: 7, halt: make(chan struct{})}
	var ids []string
	for i := range voters {
		ids = append(ids, fmt.Sprint("n", i))
	}
	e.Rounds = &Rounds{
		Self: "n0", Term: func() uint64 { return e.own }, Voters: func() []string { return ids },
		Ask: func(ids []string) { e.asked = append(e.asked, ids) }, Stop: e.halt,
	}
	return e
}

// waits calls Confirm in the background. It returns a function that returns the outcome, or nil while Confirm waits.
func (e *electorate) waits(term uint64) func() *error {
	done := make(chan error, 1)
	go func() { done <- e.Confirm(term) }()
	synctest.Wait()
	return func() *error {
		synctest.Wait()
		select {
		case err := <-done:
			return &err
		default:
			return nil
		}
	}
}

// asking reports whether a quorum round is under way.
func (e *electorate) asking() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now != nil
}

// whom returns the nodes that each question went to.
func (e *electorate) whom() [][]string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

// pass lets time pass and due timers run.
func (e *electorate) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func ended(err error) *error { return &err }

func TestAMajorityConfirms(t *testing.T) {
	for name, c := range map[string]struct {
		voters int
		terms  map[string]uint64 // the terms in the answers
		want   *error
	}{
		"alone":                    {1, nil, ended(nil)},
		"nobody answers":           {3, nil, nil},
		"one of two others":        {3, map[string]uint64{"n2": 7}, ended(nil)},
		"one of four others":       {5, map[string]uint64{"n2": 7}, nil},
		"two of four others":       {5, map[string]uint64{"n2": 7, "n4": 7}, ended(nil)},
		"who has no vote":          {3, map[string]uint64{"n3": 7}, nil},
		"itself":                   {3, map[string]uint64{"n0": 7}, nil},
		"who is in a later term":   {3, map[string]uint64{"n1": 8}, ended(limiter.ErrTryAgain)},
		"who has not yet heard":    {3, map[string]uint64{"n1": 6}, nil},
		"one in the term, one not": {5, map[string]uint64{"n1": 7, "n2": 6}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newElectorate(c.voters)
				defer close(e.halt)
				outcome := e.waits(7)
				for id, term := range c.terms {
					e.heard(e.now, id, term)
				}
				require.Equal(t, c.want, outcome())
			})
		})
	}
}

// TestAnAnswerConfirmsEarlierCallersOnly checks that the answer to an earlier question does not confirm a later caller.
func TestAnAnswerConfirmsEarlierCallersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElectorate(3)
		first := e.waits(7)
		r := e.open("n1")
		require.Same(t, r, e.open("n2"))
		second, third := e.waits(7), e.waits(7)
		require.Len(t, e.asked, 1, "only one round may be under way")
		e.heard(r, "n1", 7)
		require.Equal(t, ended(nil), first())
		e.heard(r, "n2", 7) // a late answer
		e.heard(r, "n2", 8) // must not count in the next round
		require.Nil(t, second())
		require.Len(t, e.asked, 2)
		e.heard(e.open("n1"), "n1", 7)
		require.Equal(t, ended(nil), second())
		require.Equal(t, ended(nil), third(), "both callers must share a round")
		require.Nil(t, e.open("n1"), "no round may be open without callers")
	})
}

// TestVotersThatConfirmedLastAreAskedFirst checks that the voters which confirmed the last round are asked first. The
// other voters are asked when the first ones are late.
func TestVotersThatConfirmedLastAreAskedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElectorate(5)
		defer close(e.halt)
		round := func(answers ...string) {
			outcome := e.waits(7)
			for _, id := range answers {
				require.Nil(t, outcome())
				e.heard(e.open(id), id, 7)
			}
			require.Equal(t, ended(nil), outcome())
		}
		round("n3", "n1")
		round("n1", "n3")
		require.Equal(t, [][]string{{"n0", "n1", "n2", "n3", "n4"}, {"n0", "n3", "n1"}}, e.whom())

		e.pass(2 * timers.AskAllAfter)
		outcome := e.waits(7) // n1 is down
		require.Nil(t, e.open("n2"))
		e.heard(e.open("n3"), "n3", 7)
		e.pass(timers.AskAllAfter - 1)
		require.Nil(t, e.open("n2"))
		e.pass(time.Nanosecond)
		require.Nil(t, outcome())
		require.Equal(t, e.whom()[0], e.whom()[3])
		e.heard(e.open("n2"), "n2", 7)
		require.Equal(t, ended(nil), outcome())

		e.waits(7)
		require.Equal(t, []string{"n0", "n3", "n2"}, e.whom()[4])
		e.Abandon()
		e.pass(timers.AskAllAfter)
		require.Len(t, e.whom(), 5, "nobody may be asked without callers")
	})
}

// TestAllAreAskedIfTheQuickVotersHaveNoVote checks that all voters are asked if the quick nodes can no longer vote.
func TestAllAreAskedIfTheQuickVotersHaveNoVote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElectorate(3)
		defer close(e.halt)
		first := e.waits(7)
		e.heard(e.open("n1"), "n1", 7)
		require.Equal(t, ended(nil), first())
		ids := []string{"n0", "n2", "n3"}
		e.Voters = func() []string { return ids }
		second := e.waits(7)
		require.Equal(t, ids, e.whom()[1])
		e.heard(e.open("n3"), "n3", 7)
		require.Equal(t, ended(nil), second())
	})
}

// TestAllAreAskedIfAQuickVoterWasRemoved checks that all voters are asked if one quick node was removed and
// another does not answer.
func TestAllAreAskedIfAQuickVoterWasRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElectorate(4)
		first := e.waits(7)
		for _, id := range []string{"n1", "n2"} {
			e.heard(e.open(id), id, 7)
		}
		require.Equal(t, ended(nil), first())
		ids := []string{"n0", "n1", "n3"} // n2 was removed
		e.Voters = func() []string { return ids }
		second := e.waits(7)
		e.pass(timers.AskAllAfter)
		require.Nil(t, second())
		e.heard(e.open("n3"), "n3", 7)
		require.Equal(t, ended(nil), second())
	})
}

// TestAllAreAskedAfterAFailedRound checks that all voters are asked after a failed round.
func TestAllAreAskedAfterAFailedRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElectorate(3)
		first := e.waits(7)
		e.heard(e.open("n1"), "n1", 7)
		require.Equal(t, ended(nil), first())
		e.pass(gatherFor)
		second := e.waits(7)
		time.Sleep(time.Nanosecond)
		e.Expire(0)
		require.Equal(t, ended(limiter.ErrTryAgain), second())
		e.waits(7)
		require.Equal(t, []string{"n0", "n1", "n2"}, e.whom()[2])
		e.Abandon()
	})
}

// TestARoundGathers checks that a round waits for as many callers as the previous one had, or for a moment.
func TestARoundGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElectorate(3)
		defer close(e.halt)
		hear := func() { e.heard(e.open("n1"), "n1", 7) }
		e.waits(7)
		e.waits(7)
		e.waits(7)
		hear()
		require.True(t, e.asking(), "after a round of one caller the next must not wait")
		hear()

		e.waits(7)
		require.False(t, e.asking())
		e.waits(7)
		require.True(t, e.asking(), "as many callers as before must start the round")
		hear()

		late := e.waits(7)
		e.pass(gatherFor - 1)
		require.False(t, e.asking())
		e.pass(time.Nanosecond)
		require.Nil(t, late())
		hear()
		require.Equal(t, ended(nil), late())
		e.waits(7)
		require.True(t, e.asking(), "after a round of one caller the next must not wait")

		e.waits(7)
		e.waits(7)
		e.pass(gatherFor)
		hear()
		e.pass(gatherFor)
		hear()
		alone := e.waits(7)
		require.True(t, e.asking(), "long after the previous round the next must not wait")
		e.waits(7)
		e.waits(7)
		hear()
		fewer := e.waits(7)
		require.Equal(t, ended(nil), alone())
		hear()
		require.False(t, e.asking(), "fewer callers than before must wait")
		e.pass(gatherFor)
		hear()
		require.Equal(t, ended(nil), fewer())

		e.waits(7)
		e.waits(7)
		e.waits(7)
		hear()
		hear()
		e.pass(gatherFor)
		e.waits(7)
		require.True(t, e.asking(), "the round must not wait, because no caller came in the meantime")
		hear()
	})
}

// TestAbandonEndsTheWaitOfGatheringCallers checks that Abandon also ends the wait of callers that gather before a
// round.
func TestAbandonEndsTheWaitOfGatheringCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElectorate(3)
		defer close(e.halt)
		for range 3 {
			e.waits(7)
		}
		for range 2 {
			e.heard(e.open("n1"), "n1", 7)
		}
		outcome := e.waits(7)
		require.False(t, e.asking())
		require.Nil(t, outcome())
		e.Abandon()
		require.Equal(t, ended(limiter.ErrTryAgain), outcome())

		for range 3 {
			e.waits(7)
		}
		e.heard(e.open("n1"), "n1", 7)
		fewer := e.waits(7)
		e.Abandon()
		require.Equal(t, ended(limiter.ErrTryAgain), fewer(), "after a round of two callers a single one gathers")
	})
}

func TestAnotherTermConfirmsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newElectorate(3)
		e.own = 8 // it was deposed and elected again, and the others are in that term too
		require.Equal(t, ended(limiter.ErrTryAgain), e.waits(7)())
		now, before, after := e.waits(8), e.waits(8), e.waits(7)
		require.Equal(t, ended(limiter.ErrTryAgain), after(), "a state seen in an earlier term may be old")
		e.own = 9 // deposed while the previous round was under way
		e.heard(e.open("n1"), "n1", 8)
		require.Equal(t, ended(nil), now())
		require.Equal(t, ended(limiter.ErrTryAgain), before())
	})
}

func TestNobodyWaitsForEver(t *testing.T) {
	for name, end := range map[string]func(e *electorate){
		"too long":   func(e *electorate) { e.Expire(0) },
		"not leader": func(e *electorate) { e.Abandon() },
		"closing":    func(e *electorate) { close(e.halt) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newElectorate(3)
				first, second := e.waits(7), e.waits(7)
				time.Sleep(time.Millisecond)
				end(e)
				require.Equal(t, ended(limiter.ErrTryAgain), first())
				require.Equal(t, ended(limiter.ErrTryAgain), second())
			})
		})
	}
}
