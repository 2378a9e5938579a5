package commands

import (
	"sync"
	"time"

	"github.com/weir-project/weir/internal/millis"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/info"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

func serverCommands() []*command {
	commands := []*command{
		{name: "INFO", arity: -1, syntax: "[section ...]", summary: "Information about the server",
			flags: "loading stale", run: runInfo,
			details: "Sections are `server clients memory persistence stats replication cpu commandstats errorstats " +
				"cluster keyspace weir`, in a cluster also `raft`; `all` is all of them. `keyspace` counts the groups that this node " +
				"has."},
		{name: "TIME", arity: 1, summary: "The wall clock of the limiter: seconds and microseconds",
			flags: "loading stale fast", run: runTime},
		{name: "SAVE", arity: 1, summary: "Write what changed to disk, and answer when it is there",
			flags: "admin noscript no_multi", run: runSave},
		{name: "BGSAVE", arity: -1, syntax: "[SCHEDULE]", summary: "Write what changed to disk in the background",
			flags: "admin noscript no_multi", run: runBackgroundSave},
		{name: "LASTSAVE", arity: 1, summary: "When the last save ended, in Unix time; 0: never",
			flags: "loading stale fast", run: func(s *Session, _ [][]byte) {
				s.Int(lastSaveUnix(s.srv.Limiter))
			}},
		{name: "FLUSHALL", arity: -1, syntax: "[ASYNC|SYNC]", flags: "write",
			summary: "Forget every limiter and block of all databases", run: runFlushAll,
			cost: "O(n) in the keys of the server", details: "Policies stay."},
		{name: "FLUSHDB", arity: -1, syntax: "[ASYNC|SYNC]", summary: "Forget the limiters and blocks of this database",
			flags: "write", run: runFlushDatabase, cost: "O(n) in the keys of the server",
			details: "Policies and blocks `EVERYWHERE` stay: they are common to all databases."},
		{name: "SHUTDOWN", arity: -1, syntax: "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]", summary: "Stop the server",
			flags: "admin noscript loading stale no_multi", run: runShutdown,
			details: "weir answers the commands that it has received, and writes the state to disk in any case."},
		{name: "ROLE", arity: 1, summary: "The role of this node in replication", flags: "noscript loading stale fast",
			run: runRole},
		waitCommand(),
		{name: "MONITOR", arity: 1, summary: "Show every command as it arrives",
			flags: "admin noscript loading stale no_multi", run: func(s *Session, _ [][]byte) {
				s.OK()
				setMonitor(s, true)
			}, details: "Arguments of AUTH and HELLO are not shown. While a client monitors, pipelines are decided " +
				"command by command, which is slower."},
		{name: "WEIR.UNSUPPORTED", arity: 1, summary: "What this node refused because weir does not support it",
			flags: "admin noscript loading stale", run: runUnsupported,
			details: "The last 256 pairs of a client (its name, library or host) and a request, without arguments.",
			reply: "Maps, the last refused first: `kind`, `command`, `sha1`, `client`, `library`, `addr`, `user`, " +
				"`count`, `last_ms`, `advice`."},
	}
	for _, cmd := range commands {
		cmd.group = groupServer
	}
	return commands
}

func setMonitor(s *Session, on bool) {
	s.srv.Events.Monitor(s, on)
	s.about.Update(func(i *service.Client) { i.Monitor = on })
}

func runInfo(s *Session, args [][]byte) {
	here := s.srv.Here
	facts := info.Server{
		Service: s.srv.Service, RunID: s.srv.runID, LastSave: lastSaveUnix(s.srv.Limiter),
		Subscribed: s.srv.clients.pubsubCount,
		Lasting:    oneIf(shownSet(s, here, s.srv.cfg.BlacklistKey) != nil),
	}
	for database := range facts.Expiring {
		facts.Expiring[database] = keysShown(s, database, s.srv.LenHere)
	}
	_, facts.Port = s.srv.hostPort()
	facts.Saving, facts.SaveFailed = s.srv.saver.status()
	s.Verbatim(facts.Text(args[1:]))
}

func runUnsupported(s *Session, _ [][]byte) {
	uses := s.srv.Unsupported.List()
	s.Array(len(uses))
	for i := range uses {
		u := &uses[i]
		s.Map(10)
		s.Pair("kind", u.Kind)
		s.Pair("command", u.Command)
		s.Pair("sha1", u.SHA1)
		s.Pair("client", u.Client)
		s.Pair("library", u.Library)
		s.Pair("addr", u.Addr)
		s.Pair("user", u.User)
		s.PairInt("count", u.Count)
		s.PairInt("last_ms", u.LastMs)
		s.Pair("advice", u.Advice)
	}
}

func runTime(s *Session, _ [][]byte) {
	now := s.srv.Limiter.Now()
	us := (now.NowNs + now.WallOffsetNs) / 1000
	s.Array(2)
	s.Bulk(decimal(us / 1e6))
	s.Bulk(decimal(us % 1e6))
}

// saver runs BGSAVE, at most one at a time.
type saver struct {
	mu             sync.Mutex
	saving, failed bool
}

func (v *saver) status() (saving, failed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.saving, v.failed
}

// begin reserves the saver. It returns false while a save runs.
func (v *saver) begin() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.saving {
		return false
	}
	v.saving = true
	return true
}

func (v *saver) end(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.saving, v.failed = false, err != nil
}

func runSave(s *Session, _ [][]byte) {
	v := s.srv.saver
	if !v.begin() {
		s.fail(errSaving)
		return
	}
	err := s.srv.Limiter.Save()
	v.end(err)
	if s.guarded(err) {
		s.OK()
	}
}

// runBackgroundSave starts a goroutine that the server waits for when it stops.
func runBackgroundSave(s *Session, args [][]byte) {
	v := s.srv.saver
	switch {
	case len(args) > 2 || len(args) == 2 && !limits.Is(args[1], "SCHEDULE"):
		s.fail(arg.ErrSyntax)
		return
	case !hasDisk(s.srv.Limiter.Backend()):
		s.fail(limiter.ErrNoDisk)
		return
	case !v.begin():
		s.fail(errSaving)
		return
	}
	s.srv.Running.Go(func() {
		err := s.srv.Limiter.Save()
		if err != nil {
			s.srv.Log.Error("background save failed", "err", err)
		}
		v.end(err)
	})
	s.Simple("Background saving started")
}

// hasDisk reports whether the limiter can save its state. One that does not report its storage can.
func hasDisk(lim limiter.Decider) bool {
	reporter, reports := lim.(limiter.StorageReporter)
	if !reports {
		return true
	}
	_, has := reporter.Storage()
	return has
}

func lastSaveUnix(lim limiter.Decider) int64 {
	if at := lim.LastSave(); !at.IsZero() {
		return at.Unix()
	}
	return 0
}

// runShutdown answers nothing when it succeeds. The connection closes instead.
func runShutdown(s *Session, args [][]byte) {
	for _, a := range args[1:] {
		switch {
		case limits.Is(a, "ABORT") && len(args) == 2:
			s.fail(errNotStopping)
			return
		case limits.Is(a, "SAVE"), limits.Is(a, "NOSAVE"), limits.Is(a, "NOW"), limits.Is(a, "FORCE"):
		default:
			s.fail(arg.ErrSyntax)
			return
		}
	}
	if s.srv.cfg.OnShutdown == nil {
		s.fail(errNoShutdown)
		return
	}
	s.srv.Log.Info("a client requested the shutdown", "addr", s.about.Addr, "at", time.Now())
	s.Closing = true
	go s.srv.cfg.OnShutdown()
}

func slowlogCommands() []*command {
	return []*command{
		{
			name: "SLOWLOG", arity: -2, group: groupServer, flags: "admin loading stale",
			summary: "The commands with the longest execution time",
			details: "Entries are kept for commands that take at least `slowlog-log-slower-than` microseconds " +
				"(10000 unless changed with CONFIG SET). A " +
				"pipeline of decisions is one entry.",
			subs: []*command{
				{name: "GET", arity: -2, syntax: "[count]", summary: "The newest entries, 10 unless told otherwise",
					reply: "An array of entries: id, Unix time, microseconds, arguments, client address, client name.",
					run:   runSlowlogGet, bulky: true},
				{name: "LEN", arity: 2, summary: "How many entries there are", run: func(s *Session, _ [][]byte) {
					n, _ := s.srv.Slowlog.Size()
					s.Int(int64(n))
				}},
				{name: "RESET", arity: 2, summary: "Forget all entries", run: func(s *Session, _ [][]byte) {
					s.srv.Slowlog.Clear()
					s.OK()
				}},
			},
		},
		latencyCommand(),
	}
}

func runSlowlogGet(s *Session, args [][]byte) {
	count := int64(10)
	if len(args) > 3 {
		s.fail(arg.ErrSyntax)
		return
	}
	if len(args) == 3 {
		var ok bool
		if count, ok = limits.Int(args[2]); !ok || count < -1 {
			s.fail(resp.Error("ERR count should be greater than or equal to -1"))
			return
		}
	}
	if count < 0 {
		count = service.MaxSlowlogLen
	}
	entries := s.srv.Slowlog.Newest(int(min(count, service.MaxSlowlogLen)))
	s.Array(len(entries))
	for _, e := range entries {
		s.Array(6)
		s.Int(e.Id)
		s.Int(e.At.Unix())
		s.Int(e.Took.Microseconds())
		s.Strings(e.Args)
		s.Bulk(e.Addr)
		s.Bulk(e.Name)
	}
}

// latencyCommand answers that no latency events are recorded, which is true.
func latencyCommand() *command {
	empty := func(s *Session, _ [][]byte) { s.Array(0) }
	return &command{
		name: "LATENCY", arity: -2, group: groupServer, flags: "admin loading stale",
		summary: "Latency events: none are recorded, see SLOWLOG",
		subs: []*command{
			{name: "LATEST", arity: 2, summary: "Always empty", run: empty},
			{name: "HISTORY", arity: 3, syntax: "event", summary: "Always empty", run: empty},
			{name: "HISTOGRAM", arity: -2, syntax: "[command ...]", summary: "Always empty",
				run: func(s *Session, _ [][]byte) { s.Map(0) }},
			{name: "RESET", arity: -2, syntax: "[event ...]", summary: "Always 0: there is nothing to reset",
				run: func(s *Session, _ [][]byte) { s.Int(0) }},
			{name: "DOCTOR", arity: 2, summary: "Names the commands to use instead", run: func(s *Session, _ [][]byte) {
				s.Verbatim("weir records no latency events. Slow commands are in SLOWLOG GET, times per command in " +
					"INFO commandstats.\n")
			}},
		},
	}
}

const (
	// maxWait bounds WAIT, also with the timeout 0, which has no end in Redis. A replica that is away for a minute will
	// not return while a client waits.
	maxWait = time.Minute
	// WAIT checks again after waitPollMin, then at doubling intervals up to waitPollMax. A replica is usually a
	// millisecond behind. Thousands of clients that wait for a failed replica must not keep a processor busy.
	waitPollMin = time.Millisecond
	waitPollMax = 64 * time.Millisecond
)

func waitCommand() *command {
	return &command{
		name: "WAIT", arity: 3, syntax: "replicas timeout",
		summary: "Wait until so many replicas have the decisions of this node", flags: "", run: runWait,
		details: "The leader of a cluster answers a decision when a majority has it on disk, so `WAIT` counts these " +
			"replicas at once. For more it waits " +
			"`timeout` milliseconds, at most a minute (also with 0), but not in a transaction. A follower knows " +
			"only about the majority and does not wait.",
		reply: "How many replicas have it; 0 where there are none.",
	}
}

func runWait(s *Session, args [][]byte) {
	want, okWant := limits.Int(args[1])
	timeoutMs, okTimeout := limits.Int(args[2])
	switch {
	case !okWant || want < 0:
		s.fail(arg.NotInteger("replicas", "must be a whole number from 0", args[1]))
		return
	case !okTimeout || timeoutMs < 0:
		s.fail(arg.NotInteger("timeout", "must be milliseconds from 0", args[2]))
		return
	}
	timeout := maxWait
	if timeoutMs > 0 && timeoutMs < maxWait.Milliseconds() {
		timeout = millis.Duration(timeoutMs)
	}
	if s.executing {
		timeout = 0
	}
	s.Int(s.srv.awaitReplicas(want, timeout))
}

// awaitReplicas returns how many nodes besides the leader have every entry that was committed when it was called. It
// returns when there are as many as wanted. It returns at the latest after timeout, when this node does not lead, or
// when the server stops.
func (s *Shared) awaitReplicas(want int64, timeout time.Duration) (have int64) {
	if s.Replica == nil {
		return 0
	}
	end := time.Now().Add(timeout)
	t := s.Replica.Topology()
	index := t.CommitIndex
	for pause := waitPollMin; ; pause = min(2*pause, waitPollMax) {
		have = max(have, replicasAt(t, index))
		left := time.Until(end)
		if have >= want || left <= 0 || !seesReplicas(t) || s.Draining.Load() {
			return have
		}
		s.Sleep(min(pause, left))
		t = s.Replica.Topology()
	}
}

// replicasAt returns how many nodes besides the leader surely have the log up to a committed index. A majority of the
// voters of its group always has it. With one group, the leader also counts the nodes whose progress it sees.
func replicasAt(t *limiter.Topology, index uint64) int64 {
	majority := t.FewestVoters() / 2
	if !seesReplicas(t) {
		return int64(majority)
	}
	seen := t.Count(func(m *limiter.Member) bool { return m.ID != t.Self && m.AppliedIndex >= index })
	return int64(max(majority, seen))
}

// seesReplicas reports whether this node sees the progress of the other nodes.
func seesReplicas(t *limiter.Topology) bool { return len(t.Groups) == 1 && t.Leads() }
