package commands

import (
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
		summary: "The open holds whose units the limits of a policy count for a key",
		params: []param{{"policy", "a policy made with `RL.POLICY SET`"}, paramKey,
			{"CURSOR cursor", "`0` to begin, or what RL.HOLDS answered"},
			{"COUNT n", "about how many holds to look at: 10 unless given, at most 10000"}},
		reply: "The cursor to go on with, `0` at the end, and some holds. Each is an array: its id, the units held, the " +
			"units reported as used, the milliseconds to its end, and `return` or `take`. A hold is seen at least once, " +
			"unless all of its units are used. A cursor means the same on every node.",
		cost: "O(n log h) in COUNT and holds",
		shown: []example{
			{"RL.POLICY SET tpm LIMIT FIXED FOREVER 1000", "1", ""},
			{"RL.RESERVE tpm org:acme 100 2m EXPIRE take ID req-1", "1 900 0 -1 1000 req-1", ""},
			{"RL.HOLDS tpm org:acme", "0 req-1 100 0 120000 take", ""},
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
			n, err := limits.Units("COUNT", args[1], 1, maxScanCount)
			if err != nil {
				return 0, 0, err
			}
			count = int(n)
		default:
			return 0, 0, limits.Bad("option", "must be CURSOR cursor, COUNT n", args[0])
		}
	}
	return cursor, count, nil
}
