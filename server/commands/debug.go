package commands

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/engine/hashslot"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
)

// maxDebugSleep bounds DEBUG SLEEP, which delays its own connection only.
const maxDebugSleep = 60 * time.Second

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

func lower(b []byte) string { return strings.ToLower(string(b)) }

// debugCommand moves the test clock. It is for tests of programs that use weir.
func debugCommand() *command {
	guard := func(run func(*Session, [][]byte)) func(*Session, [][]byte) {
		return func(s *Session, args [][]byte) {
			if !s.srv.cfg.EnableDebug {
				s.fail(errNoDebug)
				return
			}
			run(s, args)
		}
	}
	return &command{
		name: "DEBUG", arity: -2, group: groupServer, flags: "admin noscript loading stale no_multi",
		summary: "For tests, on servers started with DEBUG enabled",
		subs: []*command{
			{name: "CLOCK", arity: -3, syntax: "GET|SET ms|ADVANCE ms [us]", summary: "Read or move the test clock",
				flags: "admin no_multi", run: guard(runDebugClock),
				details: "Limiter time in milliseconds, and where a script looks closer, microseconds. A test clock " +
					"stands still until it is moved, and never goes back.",
				reply: "GET: the time; SET and ADVANCE: OK."},
			{name: "DIGEST", arity: 2, summary: "The last entry applied, and a hash of the state",
				flags: "admin no_multi", run: guard(runDebugDigest),
				details: "Nodes that have applied the same entry have the same hash. It reads the whole table.",
				reply:   "For each Raft group its index (0: no replica) and hash, hexadecimal."},
			{name: "REMOVE", arity: 4, syntax: "node group", summary: "Remove a node from one of several Raft groups",
				flags: "admin no_multi", run: guard(runDebugRemove),
				details: "The group is a number, from 0. The group ends on the node, which keeps the others.",
				reply:   "OK."},
			{name: "SLEEP", arity: 3, syntax: "seconds", summary: "Make this connection wait for a while",
				flags: "admin no_multi", run: guard(runDebugSleep)},
		},
	}
}

func runDebugDigest(s *Session, _ [][]byte) {
	if s.srv.Replica == nil {
		s.fail(errNoCluster)
		return
	}
	groups := len(s.srv.Replica.Topology().Groups)
	s.Array(2 * groups)
	for group := range groups {
		index, hash := s.srv.Replica.Digest(group)
		s.Int(int64(index))
		s.Bulk(strconv.FormatUint(hash, 16))
	}
}

func runDebugRemove(s *Session, args [][]byte) {
	if s.srv.Replica == nil {
		s.fail(errNoCluster)
		return
	}
	group, err := limits.Units("group", args[3], 0, hashslot.MaxGroups-1)
	if s.guarded(err) {
		err = s.srv.Replica.RemoveFromGroup(string(args[2]), int(group))
		answerChange(s, "a node was removed from a group", err, "node", string(args[2]), "group", group)
	}
}

// latestMs is the latest time of a test clock, 2^61 nanoseconds.
const latestMs = 1 << 61 / 1_000_000

func runDebugClock(s *Session, args [][]byte) {
	nowNs := s.srv.Limiter.Now().NowNs
	nowMs := nowNs / 1e6
	switch {
	case len(args) == 3 && limits.Is(args[2], "GET"):
		s.Int(nowMs)
	case len(args) == 4 && limits.Is(args[2], "SET"):
		toMs, err := limits.Units("ms", args[3], 0, latestMs)
		if err == nil && toMs < nowMs {
			err = errClockBack
		}
		if s.guarded(err) {
			advanceClock(s, time.Duration(toMs*1e6-nowNs))
		}
	case len(args) >= 4 && len(args) <= 5 && limits.Is(args[2], "ADVANCE"):
		ms, err := limits.Units("ms", args[3], 0, latestMs-nowMs)
		us := int64(0)
		if err == nil && len(args) == 5 {
			us, err = limits.Units("us", args[4], 0, 999)
		}
		if s.guarded(err) {
			advanceClock(s, time.Duration(ms*1e6+us*1e3))
		}
	default:
		s.fail(arg.ErrSyntax)
	}
}

func advanceClock(s *Session, d time.Duration) {
	if !s.srv.Limiter.Advance(max(d, 0)) {
		s.fail(errRealClock)
		return
	}
	s.srv.Waits.NotifyAll()
	s.OK()
}

func runDebugSleep(s *Session, args [][]byte) {
	n, unitNs, ok := decimalSeconds(args[2])
	if !ok || n > int64(maxDebugSleep)/unitNs {
		s.fail(limits.Bad("seconds", "must be a number above 0, at most 60", args[2]))
		return
	}
	timer := time.NewTimer(time.Duration(n * unitNs))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.srv.Stop:
	}
	s.OK()
}
