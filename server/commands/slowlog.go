package commands

import (
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

func slowlogCommands() []*command {
	return []*command{
		{
			name: "SLOWLOG", arity: -2, group: groupServer, flags: "admin loading stale",
			summary: "The commands that took longest to carry out",
			details: "Entries are kept for commands that take at least `slowlog-log-slower-than` microseconds (10000 unless changed with CONFIG SET). A " +
				"pipeline of decisions is one entry.",
			subs: []*command{
				{name: "GET", arity: -2, syntax: "[count]", summary: "The newest entries, 10 unless told otherwise",
					reply: "An array of entries: id, Unix time, microseconds, arguments, client address, client name.", run: runSlowlogGet, bulky: true},
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
		if count, ok = arg.Int(args[2]); !ok || count < -1 {
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

// latencyCommand answers truthfully that no latency events are recorded.
func latencyCommand() *command {
	empty := func(s *Session, _ [][]byte) { s.Array(0) }
	return &command{
		name: "LATENCY", arity: -2, group: groupServer, flags: "admin loading stale",
		summary: "Latency events: none are recorded, see SLOWLOG",
		subs: []*command{
			{name: "LATEST", arity: 2, summary: "Always empty", run: empty},
			{name: "HISTORY", arity: 3, syntax: "event", summary: "Always empty", run: empty},
			{name: "HISTOGRAM", arity: -2, syntax: "[command ...]", summary: "Always empty", run: func(s *Session, _ [][]byte) { s.Map(0) }},
			{name: "RESET", arity: -2, syntax: "[event ...]", summary: "Always 0: there is nothing to reset", run: func(s *Session, _ [][]byte) { s.Int(0) }},
			{name: "DOCTOR", arity: 2, summary: "Says where to look instead", run: func(s *Session, _ [][]byte) {
				s.Verbatim("weir records no latency events. Slow commands are in SLOWLOG GET, times per command in INFO commandstats.\n")
			}},
		},
	}
}
