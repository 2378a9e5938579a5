package commands

import (
	"sync"
	"time"

	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/info"
	"github.com/weir-project/weir/server/service"
)

func serverCommands() []*command {
	commands := []*command{
		{name: "INFO", arity: -1, syntax: "[section ...]", summary: "Facts about the server", flags: "loading stale", run: runInfo,
			details: "Sections are `server clients memory persistence stats replication cpu commandstats errorstats cluster keyspace weir`, in a cluster also `raft`; `all` is all of them."},
		{name: "TIME", arity: 1, summary: "The wall clock of the limiter: seconds and microseconds", flags: "loading stale fast", run: runTime},
		{name: "SAVE", arity: 1, summary: "Write what changed to disk, and answer when it is there", flags: "admin noscript no_multi", run: runSave},
		{name: "BGSAVE", arity: -1, syntax: "[SCHEDULE]", summary: "Write what changed to disk in the background", flags: "admin noscript no_multi", run: runBackgroundSave},
		{name: "LASTSAVE", arity: 1, summary: "When the last save ended, in Unix time; 0: never", flags: "loading stale fast", run: func(s *Session, _ [][]byte) {
			s.Int(lastSaveUnix(s.srv.Limiter))
		}},
		{name: "SHUTDOWN", arity: -1, syntax: "[NOSAVE|SAVE] [NOW] [FORCE] [ABORT]", summary: "Stop the server", flags: "admin noscript loading stale no_multi", run: runShutdown,
			details: "weir answers the commands that it has received, and writes the state to disk in any case."},
		{name: "ROLE", arity: 1, summary: "The role of this node in replication", flags: "noscript loading stale fast", run: runRole},
		waitCommand(),
		{name: "MONITOR", arity: 1, summary: "See every command as it comes", flags: "admin noscript loading stale no_multi", run: func(s *Session, _ [][]byte) {
			s.OK()
			s.setMonitor(true)
		}, details: "Arguments of AUTH and HELLO are not shown. While a client monitors, pipelines are decided command by command, which is slower."},
	}
	for _, cmd := range commands {
		cmd.group = groupServer
	}
	return commands
}

func (s *Session) setMonitor(on bool) {
	s.srv.Events.Monitor(s, on)
	s.about.Update(func(i *service.Client) { i.Monitor = on })
}

func runInfo(s *Session, args [][]byte) {
	facts := info.Server{
		Service: s.srv.Service, RunID: s.srv.runID, LastSave: lastSaveUnix(s.srv.Limiter), Subscribed: s.srv.clients.pubsubCount,
	}
	_, facts.Port = s.srv.hostPort()
	facts.Saving, facts.SaveFailed = s.srv.saver.status()
	s.Verbatim(facts.Text(args[1:]))
}

func runTime(s *Session, _ [][]byte) {
	now := s.srv.Limiter.Now()
	us := (now.NowNs + now.WallOffsetNs) / 1000
	s.Array(2)
	s.Bulk(decimal(us / 1e6))
	s.Bulk(decimal(us % 1e6))
}

// saver runs BGSAVE, one at a time.
type saver struct {
	mu             sync.Mutex
	saving, failed bool
}

func (v *saver) status() (saving, failed bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.saving, v.failed
}

// begin reserves the saver, or reports that it is busy.
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
	case len(args) > 2 || len(args) == 2 && !arg.Is(args[1], "SCHEDULE"):
		s.fail(arg.ErrSyntax)
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

func lastSaveUnix(lim limiter.Limiter) int64 {
	if at := lim.LastSave(); !at.IsZero() {
		return at.Unix()
	}
	return 0
}

// runShutdown answers nothing when it succeeds: the connection just ends.
func runShutdown(s *Session, args [][]byte) {
	for _, a := range args[1:] {
		switch {
		case arg.Is(a, "ABORT") && len(args) == 2:
			s.fail(errNotStopping)
			return
		case arg.Is(a, "SAVE"), arg.Is(a, "NOSAVE"), arg.Is(a, "NOW"), arg.Is(a, "FORCE"):
		default:
			s.fail(arg.ErrSyntax)
			return
		}
	}
	if s.srv.cfg.OnShutdown == nil {
		s.fail(errNoShutdown)
		return
	}
	s.srv.Log.Info("shutdown asked for by a client", "addr", s.about.Addr, "at", time.Now())
	s.Closing = true
	go s.srv.cfg.OnShutdown()
}
