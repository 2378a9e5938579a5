package commands

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
)

const (
	// defaultTop fits on a screen beside other information.
	defaultTop = 10
	// maxTop bounds the reply to about half of the keys that the sketches know.
	maxTop = 1000
)

func topCommand() *command {
	return &command{
		name: "RL.TOP", arity: -2, syntax: "ADMITTED|DENIED [n]", group: groupLook, flags: "readonly",
		summary: "The keys with the most units admitted, or denied, of late",
		details: "Decisions of the current minute count in full, of the minute before half, of the minute before " +
			"that a quarter, and so on. Counts are rounded down, so one denial is gone at the end of its minute. " +
			"So it shows the keys that are heavy now, and needs no reset. `CONFIG RESETSTAT` leaves it alone, `FLUSHALL` and a restart empty it. " +
			"Reads (`COST 0`, `RL.EXPLAIN`) and retries of an `ID` do not count. " +
			"A partial grant counts the granted units, a denial the requested units. An admitted check counts for " +
			"each of its policies, under the limiter of the policy's first limit. " +
			"A denied check counts for the limiter that binds, or for the blocked key.\n\n" +
			"The keys come from sketches of fixed size (Space-Saving, 2048 keys for each of the two) over a sample " +
			"of the decisions. A key with more than a 32nd of the units of its shard, " +
			"one of 64 that keys are spread over, is always listed. `error` says how many of a key's units may be " +
			"other keys', at most that 32nd. " +
			"From 8192 units in a shard on, chance adds an error with a standard deviation of at most sqrt(units of " +
			"the key x units of the shard) / 64.\n\n" +
			"In a cluster every node counts the entries that it applies, since its start or its first image. So " +
			"`ADMITTED` is about the same on every node and covers all decisions acknowledged before the request. " +
			"Only the leader knows the denials. Any other node answers `DENIED` with `MOVED` and the leader's " +
			"address. A new leader knows the denials since its election, and those in the log. With several Raft " +
			"groups a node knows the denials of the groups that it leads or does not have.",
		params: []param{{"n", "the greatest number of keys to list, 1 to 1000; 10 unless given"}},
		reply:  "An array with an array for each key, the heaviest first: key, units, error.",
		cost:   "O(1): some thousands of keys are looked at",
		shown: []example{
			{"RL.FIXED mail:7 FOREVER 5 COST 4", "1 1 0 -1 5", ""},
			{"RL.FIXED mail:8 FOREVER 5 COST 5", "1 0 0 -1 5", ""},
			{"RL.FIXED mail:7 FOREVER 5 COST 3", "0 1 -1 -1 5", ""},
			{"RL.TOP ADMITTED", "mail:8 5 0 mail:7 4 0", "key, units, error"},
			{"RL.TOP DENIED 1", "mail:7 3 0", ""},
		},
		read: wholeState(runTop),
	}
}

func runTop(s *Session, v limiter.View, args [][]byte) {
	verdict, n, err := topArgs(args[1:])
	if err == nil && verdict == engine.Denied {
		err = forKey(s.srv.OnlyLeader(), nil)
	}
	if !s.guarded(err) {
		return
	}
	heavy := v.Top(verdict, n)
	s.Array(len(heavy))
	for i := range heavy {
		s.Array(3)
		s.BulkBytes(heavy[i].Key)
		s.Int(heavy[i].Units)
		s.Int(heavy[i].Error)
	}
}

func topArgs(args [][]byte) (v engine.Verdict, n int, err error) {
	switch {
	case len(args) > 2:
		return 0, 0, arg.ErrSyntax
	case limits.Is(args[0], "DENIED"):
		v = engine.Denied
	case !limits.Is(args[0], "ADMITTED"):
		return 0, 0, limits.Bad("what to list", "must be ADMITTED or DENIED", args[0])
	}
	most := int64(defaultTop)
	if len(args) == 2 {
		most, err = limits.Units("n", args[1], 1, maxTop)
	}
	return v, int(most), err
}
