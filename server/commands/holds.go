package commands

import (
	"math"
	"strconv"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/service"
)

// holdsCommand is RL.HOLDS, which lists open holds.
func holdsCommand() *command {
	return &command{
		name: "RL.HOLDS", arity: -3, syntax: "policy key [CURSOR cursor] [COUNT n]", group: groupLook,
		flags: "readonly", keys: keySpec{2, 2, 1}, bulky: true,
		summary: "Walk through the open holds under a policy and a key",
		params: []param{{"policy", "a policy made with `RL.POLICY SET`"}, paramKey,
			{"CURSOR cursor", "`0` to begin, or what RL.HOLDS answered"},
			{"COUNT n", "about how many holds a step looks at; 10 without it, at most 10000"}},
		reply: "The cursor to go on with, `0` at the end, and some holds. Each is an array of its id, the units that are " +
			"held, the units that were reported as used (`RL.COMMIT` with `KEEP`), the milliseconds until it ends by " +
			"itself, and what happens then (`return` or `take`). A hold that has reported all of its units as used is not " +
			"among them. A hold that is open all the time is seen at least " +
			"once, and again if it is extended meanwhile. A cursor means the same on every node of a cluster, after a " +
			"restart, and after a failover.",
		cost: "O(n log h) in COUNT, with h holds on a limit",
		shown: []example{
			{"RL.POLICY SET tpm LIMIT FIXED FOREVER 1000", "1", ""},
			{"RL.RESERVE tpm org:acme 100 2m EXPIRE take ID req-1", "1 900 0 -1 1000 req-1", ""},
			{"RL.COMMIT req-1 30 KEEP", "900", ""},
			{"RL.HOLDS tpm org:acme", "0 req-1 70 30 120000 take", "70 units are held, and 30 used"},
		},
		read: keyState(runHolds),
	}
}

func runHolds(s *Session, v limiter.View, args [][]byte) {
	policy, key := args[1], args[2]
	cursor, count, err := holdsOptions(args[3:])
	if !s.guarded(err) {
		return
	}
	if v.Policies().Get(policy) == nil {
		s.guarded(nearPolicies(s, service.NoPolicy(policy), policy))
		return
	}
	list, next := v.Holds(policy, key, cursor, count)
	s.Array(2)
	s.Bulk(strconv.FormatUint(next, 10))
	s.Array(len(list))
	for i := range list {
		x := &list[i]
		s.Array(5)
		s.BulkBytes(x.ID)
		s.Int(x.Held)
		s.Int(x.Used)
		s.Int(x.EndsMs)
		if x.Keep {
			s.Bulk("take")
		} else {
			s.Bulk("return")
		}
	}
}

func holdsOptions(args [][]byte) (cursor uint64, count int, err error) {
	count = defaultScanCount
	for ; len(args) > 0; args = args[2:] {
		switch {
		case len(args) < 2:
			return 0, 0, arg.ErrSyntax
		case limits.Is(args[0], "CURSOR"):
			if cursor, err = parseCursor("RL.HOLDS", args[1]); err != nil {
				return 0, 0, err
			}
		case limits.Is(args[0], "COUNT"):
			n, err := limits.Units("COUNT", args[1], 1, math.MaxInt64)
			if err != nil {
				return 0, 0, err
			}
			count = int(min(n, maxScanCount))
		default:
			return 0, 0, arg.ErrSyntax
		}
	}
	return cursor, count, nil
}
