package commands

import (
	"slices"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/service"
)

// hashCommands read what recognised scripts keep in a hash or a sorted set, as Redis' commands of the same names do.
func hashCommands() []*command {
	return []*command{
		{
			name: "HLEN", arity: 2, syntax: "key", group: groupLook, flags: "readonly fast", keys: oneKey,
			summary: "How many fields HGETALL shows", reply: "0: the limiter is idle.",
			read: keyState(runHashLen),
		},
		{
			name: "HKEYS", arity: 2, syntax: "key", group: groupLook, flags: "readonly fast", keys: oneKey,
			summary: "The names of the fields that HGETALL shows", read: keyState(runHashNames),
		},
		{
			name: "HEXISTS", arity: 3, syntax: "key field", group: groupLook, flags: "readonly fast", keys: oneKey,
			summary: "Whether HGETALL shows a field", reply: "1, or 0.", read: keyState(runHashHas),
		},
		{
			name: "ZCARD", arity: 2, syntax: "key", group: groupLook, flags: "readonly fast", keys: oneKey,
			summary: "How many requests the sorted set of a recognised script has", read: keyState(runSetSize),
			reply: "0: the key is idle. `WRONGTYPE` for other limiters. weir keeps the times of the set and no " +
				"members, so there is no ZRANGE.",
		},
	}
}

func runHashLen(s *Session, v limiter.View, args [][]byte) { s.Int(int64(len(hashFields(v, args[1])))) }

func runHashNames(s *Session, v limiter.View, args [][]byte) {
	hash := hashFields(v, args[1])
	s.Array(len(hash))
	for _, f := range hash {
		s.Bulk(f.Name)
	}
}

func runHashHas(s *Session, v limiter.View, args [][]byte) {
	named := func(f engine.HashField) bool { return f.Name == string(args[2]) }
	s.Bool(slices.ContainsFunc(hashFields(v, args[1]), named))
}

func runSetSize(s *Session, v limiter.View, args [][]byte) {
	info, _ := inspectNamed(v, args[1])
	if info.Algorithm != engine.NoAlgorithm && info.Members == 0 {
		s.fail(service.ErrWrongType)
		return
	}
	s.Int(info.Members)
}
