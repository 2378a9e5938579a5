package commands

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// The commands of Redis sets work on one key, Config.BlacklistKey: the set of the addresses with a block everywhere.
// Programs that keep their blacklist in a set need no other command.

var (
	paramSet    = param{"key", "the key that `--blacklist-key` names; an error on any other"}
	paramMember = param{"member", "an address or a network, like `192.0.2.66`, `2001:db8:0:7::1` or `192.0.2.0/24`"}
)

func blacklistCommands() []*command {
	commands := []*command{
		{
			name: "SADD", arity: -3, syntax: "key member [member ...]", flags: "write denyoom fast",
			group:   groupCorrect,
			summary: "Block addresses everywhere, as members of a set",
			details: "The same as `RL.BLOCK ip:<member> FOREVER EVERYWHERE` for each member: " +
				"[Block an address](security.md#block-an-address) says which decisions that denies. The set on the " +
				"key that [`--blacklist-key`](configuration.md#--blacklist-key) names has all addresses and networks " +
				"with such a block. A network must be no wider than /8 (IPv4) or /16 (IPv6), and have no bits behind " +
				"its length: `10.1.2.3/8` is an error." +
				"\n\nAn address counts in all of its forms: `::ffff:192.0.2.66` is `192.0.2.66`, and an " +
				"IPv6 address, or a longer network, is its /64. The set has at most 100000 members. If the new ones " +
				"do not all fit, none is added. A member has no end: `RL.BLOCK ip:<address> <duration> EVERYWHERE` " +
				"adds one that has. `TTL`, `TYPE`, `EXISTS`, `KEYS`, `SCAN` and `DBSIZE` know the set; any other " +
				"command on its key, like `EXPIRE` or `SPOP`, is an error.",
			params: []param{paramSet, paramMember},
			reply:  "How many of the addresses were not blocked everywhere before.",
			cost:   "O(n) in the members given",
			plan:   planBlacklistAdd, answer: answerBlacklistAdd,
		},
		{
			name: "SREM", arity: -3, syntax: "key member [member ...]", flags: "write fast", group: groupCorrect,
			summary: "Lift the blocks of addresses, as members of a set",
			details: "The same as `RL.UNBLOCK ip:<member>` for each member.",
			params:  []param{paramSet, paramMember}, reply: "How many of the addresses were blocked.",
			cost: "O(n) in the members given",
			plan: planBlacklistRemove, answer: answerReset,
		},
		{
			name: "SISMEMBER", arity: 3, syntax: "key member", flags: "readonly fast", group: groupLook,
			summary: "Whether an address is blocked everywhere",
			params:  []param{paramSet, paramMember},
			reply: "1 if the address, or every address of the network, is denied: it is a member, or a network that " +
				"is a member contains it. Otherwise 0, also for a member that is no address.",
			read: baseState(runBlacklistHas),
		},
		{
			name: "SMISMEMBER", arity: -3, syntax: "key member [member ...]", flags: "readonly fast", group: groupLook,
			summary: "Whether addresses are blocked everywhere", cost: "O(n) in the members given",
			params: []param{paramSet, paramMember}, reply: "1 or 0 for each member, in their order.",
			read: baseState(runBlacklistHasEach),
		},
		{
			name: "SMEMBERS", arity: 2, syntax: "key", flags: "readonly", group: groupLook,
			summary: "The addresses that are blocked everywhere", cost: "O(b log b) in the blocks everywhere",
			params: []param{paramSet}, reply: "A set of addresses and networks, in the order of their texts. An IPv6 " +
				"client is its /64.", read: baseState(runBlacklistMembers),
		},
		{
			name: "SSCAN", arity: -3, syntax: "key cursor [MATCH pattern] [COUNT n]", flags: "readonly",
			group: groupLook, summary: "Walk through the addresses that are blocked everywhere",
			cost: "O(n) in COUNT",
			params: []param{paramSet, {"cursor", "`0` to begin, or what SSCAN answered"}, {"MATCH pattern",
				"only members that match it"}, {"COUNT n", "how many members a step looks at; 10 without it"}},
			reply: "The cursor to go on with, `0` at the end, and some members. A member that is there all the time " +
				"is seen exactly once. A cursor means the same on every node of a cluster, and after a restart.",
			read: baseState(runBlacklistScan),
		},
		{
			name: "SCARD", arity: 2, syntax: "key", flags: "readonly fast", group: groupLook,
			summary: "How many addresses are blocked everywhere",
			params:  []param{paramSet}, reply: "The number of members.", read: baseState(runBlacklistSize),
		},
	}
	for _, cmd := range commands {
		cmd.keys = oneKey
	}
	return commands
}

// blacklist returns the key of the set of blocked addresses, which is one of database 0; "" if there is none.
func (s *Session) blacklist() string {
	if s.database != 0 {
		return ""
	}
	return s.srv.cfg.BlacklistKey
}

// checkBlacklist refuses a set command on any other key than the blacklist.
func checkBlacklist(s *Session, args [][]byte) error {
	name, key := strings.ToUpper(string(args[0])), s.srv.cfg.BlacklistKey
	switch {
	case key != "" && s.database != 0:
		return resp.Error("ERR " + name + " is for the set of blocked addresses only, which is in database 0")
	case key == "":
		return lacks(service.RefusesCommand, resp.Error("ERR "+name+
			" is for the set of blocked addresses only: --blacklist-key must name its key when the server starts"), "")
	case string(args[1]) != key:
		accepted := "of " + name + " must be " + key + ", the set of blocked addresses (--blacklist-key)"
		return lacks(service.RefusesCommand, limits.Bad("key", accepted, args[1]), "the key "+accepted)
	}
	return nil
}

// isBlacklist reports whether a key names the set of blocked addresses.
func (s *Session) isBlacklist(key []byte) bool {
	set := s.blacklist()
	return set != "" && string(key) == set
}

// shownSet returns the key of the set of blocked addresses if KEYS, SCAN and DBSIZE of this node show it: it has
// members, and its slot is one that the node shows.
func shownSet(s *Session, v limiter.Common, key string) []byte {
	set := []byte(key)
	if shows := own(s); len(set) == 0 || shows != nil && !shows(set) || blacklistLen(v) == 0 {
		return nil
	}
	return set
}

// checkNotBlacklist refuses operations that would keep a limiter, a string or a block under the key of the set. The set
// is no key of the limiter, so the operation would have no effect on it.
func checkNotBlacklist(s *Session, ops []engine.Op) error {
	for i := range ops {
		switch op := &ops[i]; op.Code {
		case engine.OpTake, engine.OpIncr, engine.OpScript, engine.OpRelease, engine.OpRenew, engine.OpRefund,
			engine.OpBlock, engine.OpBlockEverywhere:
			if s.isBlacklist(op.Key) {
				return resp.Error("WRONGTYPE " + s.blacklist() + " is the set of blocked addresses: use SADD " +
					"and SREM, and RL.BLOCK ip:<address> <duration> EVERYWHERE for a member that expires")
			}
		}
	}
	return nil
}

// checkSpace refuses an SADD whose new members would not all fit in the set.
func checkSpace(srv *Shared, ops []engine.Op) error {
	blocks := srv.Here.BlocksEverywhere()
	fresh := make(map[string]bool)
	for i := range ops {
		if !blocks.Has(ops[i].Key) {
			fresh[string(ops[i].Key)] = true
		}
	}
	inForce, _ := blocks.Len()
	if len(fresh) == 0 || inForce+int64(len(fresh)) <= blocks.Max {
		return nil
	}
	return resp.Error(fmt.Sprintf("ERR at most %d blocks EVERYWHERE may be in force, %d are, and this command "+
		"adds %d: no address was added; SREM or RL.UNBLOCK some", blocks.Max, inForce, len(fresh)))
}

// blacklistOps begins an operation on the block of each member.
func blacklistOps(s *Session, args [][]byte, code engine.OpCode) error {
	if err := checkBlacklist(s, args); err != nil {
		return err
	}
	for _, member := range args[2:] {
		key, err := arg.Network("member", member)
		if err != nil {
			return err
		}
		op, err := s.op(code, key)
		if err != nil {
			return err
		}
		op.Partial = ofSomeKeys(s)
		if code == engine.OpBlockEverywhere {
			op.TTLNs, op.High = engine.Never, true
		}
	}
	return nil
}

func planBlacklistAdd(s *Session, args [][]byte) error {
	before := len(s.batch.Ops)
	if err := blacklistOps(s, args, engine.OpBlockEverywhere); err != nil {
		return err
	}
	return checkSpace(s.srv, s.batch.Ops[before:])
}

func planBlacklistRemove(s *Session, args [][]byte) error {
	return blacklistOps(s, args, engine.OpUnblock)
}

// answerBlacklistAdd answers the number of addresses that had no block everywhere before.
func answerBlacklistAdd(s *Session, _ []engine.Op, ds []engine.Decision) {
	added := int64(0)
	for i := range ds {
		added += ds[i].Allowed - ds[i].Remaining
	}
	s.Int(added)
}

// inBlacklist reports whether a block everywhere denies an address, or all addresses of a network.
func inBlacklist(v limiter.Common, member []byte) bool {
	key, err := arg.Network("member", member)
	return err == nil && v.FromBlock(key).By != ""
}

// blacklistLen returns the number of members.
func blacklistLen(v limiter.Common) int64 {
	_, members := v.BlocksEverywhere().Len()
	return members
}

// hasBlacklist reports whether a key is that of the set of blocked addresses, and the set has members. Without members
// the key does not exist, as in Redis.
func (s *Session) hasBlacklist(v limiter.Common, key []byte) bool {
	return s.isBlacklist(key) && blacklistLen(v) > 0
}

func runBlacklistHas(s *Session, v limiter.View, args [][]byte) {
	if s.guarded(checkBlacklist(s, args)) {
		s.Int(int64(oneIf(inBlacklist(v, args[2]))))
	}
}

func runBlacklistHasEach(s *Session, v limiter.View, args [][]byte) {
	if !s.guarded(checkBlacklist(s, args)) {
		return
	}
	s.Array(len(args) - 2)
	for _, member := range args[2:] {
		s.Int(int64(oneIf(inBlacklist(v, member))))
	}
}

func runBlacklistSize(s *Session, v limiter.View, args [][]byte) {
	if s.guarded(checkBlacklist(s, args)) {
		s.Int(blacklistLen(v))
	}
}

func runBlacklistMembers(s *Session, v limiter.View, args [][]byte) {
	if !s.guarded(checkBlacklist(s, args)) {
		return
	}
	var members []string
	for _, member := range v.BlocksEverywhere().Members(0) {
		members = append(members, member)
	}
	slices.Sort(members)
	s.Set(len(members))
	for _, member := range members {
		s.Bulk(member)
	}
}

func runBlacklistScan(s *Session, v limiter.View, args [][]byte) {
	cursor, err := parseCursor("SSCAN", args[2])
	if !s.guarded(checkBlacklist(s, args)) || !s.guarded(err) {
		return
	}
	count, filter, err := scanOptions(args[3:])
	if filter.kind != "" {
		err = arg.ErrSyntax
	}
	if !s.guarded(err) {
		return
	}
	var members []string
	n, last, next := 0, uint64(0), uint64(0)
	for at, member := range v.BlocksEverywhere().Members(cursor) {
		if n >= count && at > last { // members at one position are not separated
			next = at
			break
		}
		if n, last = n+1, at; filter.accepts([]byte(member), "") {
			members = append(members, member)
		}
	}
	s.Array(2)
	s.Bulk(strconv.FormatUint(next, 10))
	s.Array(len(members))
	for _, member := range members {
		s.Bulk(member)
	}
}
