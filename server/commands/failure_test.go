package commands

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
)

// TestAnErrorSaysWhatWasDone checks the errors of commands on several keys of which some groups failed. None of them
// may say that nothing was done if something was.
func TestAnErrorSaysWhatWasDone(t *testing.T) {
	s := &Session{}
	ops := []engine.Op{{Code: engine.OpReset, Key: []byte("a")}, {Code: engine.OpReset, Key: []byte("b")},
		{Code: engine.OpReset, Key: []byte("c")}}
	again, down := limiter.ErrTryAgain.Status(), limiter.ErrClusterDown.Status()
	unknown := limiter.ErrUnknownOutcome.Status()
	for _, test := range []struct {
		is   []engine.Status
		want string
	}{
		{[]engine.Status{engine.OK, engine.OK, engine.OK}, ""},
		{[]engine.Status{again, again, again}, "TRYAGAIN not applied, send it again"},
		{[]engine.Status{again, down, limiter.ErrOverloaded.Status()}, "TRYAGAIN not applied, send it again"},
		{[]engine.Status{engine.OK, again, engine.OK},
			"UNKNOWN 2 of 3 are done, 1 are not ('b'); the first because: not applied, send it again"},
		{[]engine.Status{engine.OK, unknown, down}, "UNKNOWN 1 of 3 are done, 1 are not " +
			"('c'), 1 may be ('b'); the first because: no answer in time, it may have been counted"},
		{[]engine.Status{again, unknown, again}, "UNKNOWN 0 of 3 are done, " +
			"2 are not ('a' 'c'), 1 may be ('b'); the first because: not applied, send it again"},
		{[]engine.Status{engine.OK, engine.OutOfMemory, engine.OK}, "OOM 2 of 3 are done, 1 are not ('b'); the first " +
			"because: memory is at --max-memory and no limiter could be evicted (weir never evicts blocks and holds, " +
			"and nothing with --when-full deny); nothing was counted, raise --max-memory"},
	} {
		ds := make([]engine.Decision, len(ops))
		for i := range ds {
			ds[i].Status = test.is[i]
		}
		err := s.failure(ops, ds)
		if test.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, test.want)
	}
	require.EqualError(t, s.failure(ops[:2], []engine.Decision{{}, {Status: engine.BlocksFull, Remaining: 100000}}),
		"ERR 1 of 2 are done, 1 are not ('b'); the first because: at most 100000 blocks EVERYWHERE may be in force, and "+
			"this one was not set: RL.UNBLOCK one, or block single keys")
	some := engine.Decision{Status: limiter.ErrSomeGroups.Status(), Allowed: 5, Limit: 8}
	require.EqualError(t, s.failure(ops[:2], []engine.Decision{some, some}), "UNKNOWN the change is made, and 5 of 8 "+
		"groups have it: the others get it by themselves, once they have a leader")
	reads := []engine.Op{{Code: engine.OpScript, Script: &engine.Script{ID: engine.TextLook}},
		{Code: engine.OpScript, Script: &engine.Script{ID: engine.TextLook}}}
	require.EqualError(t, s.failure(reads, []engine.Decision{{}, {Status: limiter.ErrTryAgain.Status()}}),
		"TRYAGAIN not applied, send it again", "a read changes nothing")
}
