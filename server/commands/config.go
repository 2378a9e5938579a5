package commands

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

// setting is one parameter of CONFIG, under its name in Redis.
type setting struct {
	name string
	get  func(*Shared) string
	// set changes the parameter to a number from least to most. It is nil if the parameter is fixed at the start.
	set         func(*Shared, int64)
	least, most int64
}

// settings lists the parameters that CONFIG GET answers. Clients and exporters ask for these names. The password is
// never in the list.
func settings() []setting {
	fixed := func(name, value string) setting {
		return setting{name: name, get: func(*Shared) string { return value }}
	}
	number := func(name string, get func(*Shared) int64) setting {
		return setting{name: name, get: func(s *Shared) string { return strconv.FormatInt(get(s), 10) }}
	}
	all := []setting{
		fixed("appendonly", "no"), fixed("save", ""),
		fixed("databases", strconv.Itoa(engine.Databases)), fixed("timeout", "0"),
		fixed("replica-read-only", "no"), fixed("notify-keyspace-events", ""),
		fixed("tcp-keepalive", strconv.Itoa(int(KeepAliveIdle.Seconds()))),
		{name: "maxmemory-policy", get: func(s *Shared) string {
			if s.cfg.DenyWhenFull {
				return "noeviction"
			}
			return "volatile-ttl"
		}},
		{name: "cluster-enabled", get: func(s *Shared) string { return yesNo(s.Replica != nil) }},
		{name: "bind", get: func(s *Shared) string { host, _ := s.hostPort(); return host }},
		{name: "port", get: func(s *Shared) string { _, port := s.hostPort(); return port }},
		{name: "tls-port", get: func(s *Shared) string { _, port := splitAddr(s.cfg.TLSAddr); return port }},
		{name: "protected-mode", get: func(s *Shared) string { return yesNo(s.cfg.ProtectedMode) }},
		{name: "enable-debug-command", get: func(s *Shared) string { return yesNo(s.cfg.EnableDebug) }},
		number("maxclients", func(s *Shared) int64 { return int64(s.cfg.MaxClients) }),
		number("proto-max-bulk-len", func(s *Shared) int64 { return int64(s.cfg.MaxBulkBytes) }),
		number("maxmemory", func(s *Shared) int64 { return s.Limiter.Stats().MaxMemoryBytes }),
		{
			name: "slowlog-log-slower-than",
			get:  func(s *Shared) string { return strconv.FormatInt(s.Slowlog.ThresholdUs.Load(), 10) },
			set:  func(s *Shared, us int64) { s.Slowlog.ThresholdUs.Store(us) }, least: -1, most: 3_600_000_000,
		},
		{
			name: "slowlog-max-len",
			get:  func(s *Shared) string { _, keep := s.Slowlog.Size(); return strconv.Itoa(keep) },
			set:  func(s *Shared, n int64) { s.Slowlog.Resize(int(n)) }, most: service.MaxSlowlogLen,
		},
	}
	slices.SortFunc(all, func(a, b setting) int { return cmp.Compare(a.name, b.name) })
	return all
}

// flagsOfSettings names the flag of weir that decides a setting which cannot be changed while the server runs.
var flagsOfSettings = map[string]string{
	"appendonly": "data-dir", "save": "data-dir", "maxmemory": "max-memory", "maxmemory-policy": "when-full",
	"maxclients": "max-clients", "proto-max-bulk-len": "max-bulk-bytes", "bind": "listen", "port": "listen",
	"tls-port": "tls-listen", "protected-mode": "protected-mode", "enable-debug-command": "debug-commands",
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// hostPort splits the address that the server reports as its own.
func (s *Shared) hostPort() (host, port string) { return splitAddr(s.cfg.Addr) }

// splitAddr splits host:port. It returns port 0, Redis' value for no port, if addr is not of that form.
func splitAddr(addr string) (host, port string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr, "0"
	}
	return host, port
}

func configCommands() []*command {
	return []*command{{
		name: "CONFIG", arity: -2, group: groupServer, flags: "admin noscript loading stale", summary: "Settings",
		subs: []*command{
			{name: "GET", arity: -3, syntax: "pattern [pattern ...]", summary: "Settings by name or pattern",
				reply: "A map of names and values.", run: runConfigGet},
			{name: "SET", arity: -4, syntax: "name value [name value ...]", summary: "Change settings while running",
				details: "`slowlog-log-slower-than` and `slowlog-max-len` can be changed; everything else is set " +
					"when the server starts.", run: runConfigSet, Command: service.Command{Hides: hidesSetting}},
			{name: "RESETSTAT", arity: 2, summary: "Set the command and error counters of INFO to zero",
				run: func(s *Session, _ [][]byte) {
					s.srv.Stats.Reset()
					s.OK()
				}},
			{name: "REWRITE", arity: 2, summary: "Refused: settings come from flags",
				run: func(s *Session, _ [][]byte) { s.fail(errNoConfigFile) }},
		},
	}}
}

func runConfigGet(s *Session, args [][]byte) {
	var found []setting
	for _, set := range settings() {
		for _, pattern := range args[2:] {
			if len(pattern) <= maxPatternBytes &&
				engine.MatchGlob([]byte(strings.ToLower(string(pattern))), []byte(set.name)) {
				found = append(found, set)
				break
			}
		}
	}
	s.Map(len(found))
	for _, set := range found {
		s.Pair(set.name, set.get(s.srv))
	}
}

// hidesSetting hides the value of each setting that CONFIG SET cannot change: it may be a password.
func hidesSetting(args [][]byte, i int) bool {
	return i > 2 && i%2 == 1 && !slices.ContainsFunc(settings(), func(one setting) bool {
		return one.set != nil && strings.EqualFold(string(args[i-1]), one.name)
	})
}

// runConfigSet changes all parameters or none.
func runConfigSet(s *Session, args [][]byte) {
	if len(args)%2 != 0 {
		s.fail(wrongArity(s.srv.table.find([]byte("CONFIG")).sub([]byte("SET"))))
		return
	}
	var changes []func(*Shared)
	all := settings()
	for i := 2; i < len(args); i += 2 {
		change, err := planSetting(all, args[i], args[i+1])
		if err != nil {
			s.fail(err)
			return
		}
		changes = append(changes, change)
	}
	for _, change := range changes {
		change(s.srv)
	}
	s.OK()
}

// planSetting returns the function that changes a parameter to a value, or Redis' error.
func planSetting(all []setting, name, value []byte) (func(*Shared), error) {
	at := slices.IndexFunc(all, func(set setting) bool { return strings.EqualFold(set.name, string(name)) })
	if at < 0 {
		const accepted = "parameter must be one of CONFIG GET *"
		shown := quote.Printable(name, quote.MaxBytes)
		return nil, lacks(service.LacksOption,
			resp.Error("ERR Unknown option or number of arguments for CONFIG SET - '"+shown+"': "+accepted), accepted)
	}
	set := all[at]
	if set.set == nil {
		text := "ERR CONFIG SET failed (possibly related to argument '" + set.name + "') - can't set immutable config"
		if flag := flagsOfSettings[set.name]; flag != "" {
			text += "; start weir with --" + flag + " instead (docs/configuration.md)"
		}
		return nil, lacks(service.RefusesCommand, resp.Error(text), "")
	}
	n, err := limits.Units(set.name, value, set.least, set.most)
	return func(s *Shared) { set.set(s, n) }, err
}
