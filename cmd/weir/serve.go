package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/tracing"
	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/server"
	"github.com/weir-project/weir/server/envoyrls"
	"github.com/weir-project/weir/server/httpapi"
)

// drainTimeout is how long clients may take to read their last replies before they are disconnected. It is the default
// of the write timeout, and well within the 30 s that container platforms wait before a kill.
const drainTimeout = 10 * time.Second

type serveCmd struct {
	Listen string `address:"listen" mayempty:"" default:"127.0.0.1:6380" group:"ports" help:"Address for clients. By default only this machine can connect, because without a password any client could reset limiters. Port 0 takes a free port. Leave it empty to turn plain text off; then --tls-listen is required."`
	HTTP   string `name:"http" address:"listen" mayempty:"" default:"127.0.0.1:6381" group:"ports" help:"Address for /livez, /readyz, /metrics, the status page and /check. Leave it empty for no HTTP port."`
	Config string `placeholder:"FILE" group:"file" help:"YAML file with any of these flags as keys. Flags win over WEIR_* variables, variables over the file."`

	DataDir           string        `mayempty:"" default:"weir-data" group:"state" help:"Directory for the state. Changes are saved every second and at shutdown, so a crash loses at most the last second. Leave it empty to keep no state on disk."`
	MaxDowntimeCredit time.Duration `default:"24h" group:"state" help:"Maximum downtime that refills limits, as measured by the wall clock. Choose more than maintenance takes, and less than a week. Then a wall clock that is years ahead refills no weekly or monthly quota. A cluster that was down as a whole follows the wall clocks of a majority. Give every node the same."`
	MaxCalendarStep   time.Duration `default:"8760h" group:"state" help:"How far, at most, windows of clock and calendar follow the wall clock after a downtime. With the default, a year, days begin at midnight again after any usual downtime. If the wall clock is further away, the log says so."`
	TestClock         bool          `group:"state" help:"Use a clock that stands still until DEBUG CLOCK SET or ADVANCE moves it, to test programs without waiting. Allows DEBUG."`

	HTTPCheck string `name:"http-check" default:"off" enum:"off,protected,open" group:"ports" help:"Decisions over HTTP for proxies, at /check on the port of --http. protected: for clients with the password, and without a password for this machine only. open: for any client that reaches the port. off by default, because most servers need no such port."`

	HTTPREST bool `name:"http-rest" group:"ports" help:"Commands in Upstash's REST form on the port of --http. Off by default, because it takes every command that a user may send."`

	RLS string `name:"rls" address:"listen" placeholder:"HOST:PORT" group:"ports" help:"Address for Envoy's rate limit service, version 3, over gRPC. None by default, because most servers need no such port."`

	EnvoyConfig       []string `placeholder:"PATH" group:"ports" help:"Files of limits for --rls, in the YAML of envoyproxy/ratelimit, or directories of such files (*.yaml, *.yml). Followed as --policies is. Domains that no file has follow policies. Give every node of a cluster the same."`
	EnvoyMergeDomains bool     `group:"ports" help:"Allow several files of --envoy-config for one domain. Off by default, as in envoyproxy/ratelimit: a second file for a domain is usually a mistake."`
	EnvoyFields       bool     `group:"ports" help:"Send RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset to clients in the domains of --envoy-config, and Retry-After with a denial. Off by default, as in envoyproxy/ratelimit."`

	EnvoyEnvironment bool `group:"ports" help:"Read the environment variables of envoyproxy/ratelimit, such as GRPC_PORT. Flags, WEIR_* variables and --config win over them. Off by default, because the PORT of another program is not meant for weir."`

	Requirepass     string `placeholder:"PASSWORD" group:"access" help:"Password that clients must give with AUTH or HELLO. Other users of this machine can read it from the process list: the file is better."`
	RequirepassFile string `placeholder:"FILE" group:"access" help:"File that contains the password."`
	UsersFile       string `placeholder:"FILE" group:"access" help:"File of users and what each may do, in the syntax of Redis' ACL files; docs/security.md has the rules. Read again at SIGHUP. If the file does not define the user default, this user can log in only with --requirepass."`
	ProtectedMode   bool   `default:"true" group:"access" help:"On by default: without a password, refuse to listen beyond this machine. Set to false only if the network itself keeps unknown clients out."`
	DebugCommands   bool   `group:"access" help:"Allow the DEBUG command. Off by default, because DEBUG can stop and crash the server on purpose."`

	MaxClients     int              `least:"1" default:"10000" group:"bounds" help:"Connections at once; fewer if the limit on file descriptors is too low. The default is the same as in Redis."`
	MaxPerSource   int              `name:"max-clients-per-source" default:"0" group:"bounds" help:"Connections at once from one address, or from one IPv6 network of 64 bits; 0 means no such bound. Behind a proxy all clients have one address."`
	MaxBulkBytes   cmdline.ByteSize `least:"1kb" default:"128kb" group:"bounds" help:"Longest argument of a command; a longer one ends the connection. Keys end at 512 bytes; the rest is room for strings and scripts."`
	MaxValueBytes  cmdline.ByteSize `least:"1" default:"64kb" group:"bounds" help:"Longest string that SET and scripts of limiter libraries keep, at most 1mb. Libraries that keep a list of all requests of a window need 9 to 11 bytes for each. Set --max-bulk-bytes to at least as much."`
	MaxOutputBytes cmdline.ByteSize `least:"16kb" default:"1mb" group:"bounds" help:"Bytes of MONITOR and SUBSCRIBE messages that may wait for a client that does not read. With more the client is disconnected."`
	WriteTimeout   time.Duration    `least:"1ms" default:"10s" group:"bounds" help:"How long a reply may wait for its reader before the client is disconnected."`

	MaxMemory  memoryBound   `default:"auto" group:"bounds" help:"Bound on the memory of limiters, like 1gb. auto is 75 percent of what the machine or container has, 0 is no bound. The bound protects the process against a flood of invented keys."`
	WhenFull   string        `default:"least-harm" enum:"least-harm,deny" group:"bounds" help:"How a new key is handled when memory is full. least-harm evicts the keys that are nearest to idle, and counts them; deny answers OOM."`
	IDLifetime time.Duration `name:"id-lifetime" least:"1ms" default:"60s" group:"state" help:"How long weir remembers the ID of a command, so that sending it again takes nothing more. Choose longer than any client keeps retrying. In a cluster the setting of the node that bootstrapped the cluster applies."`

	EventsMemory cmdline.ByteSize `least:"64kb" default:"16mb" group:"bounds" help:"Memory for the newest events of RL.EVENTS, on top of --max-memory; of each Raft group. The oldest events are dropped, and readers that have not read them are told. In a cluster the first setting of a leader other than 16mb stays."`

	Policies string `placeholder:"PATH" group:"state" help:"YAML file of policies, or directory of such files (*.yaml, *.yml). Applied at the start, at SIGHUP and after each change; policies that it does not name stay as they are, and a bad file changes nothing."`

	BlacklistKey string `placeholder:"KEY" group:"access" help:"Key on which SADD, SREM, SISMEMBER, SMEMBERS, SCARD and SSCAN work, as the set of the addresses and networks that RL.BLOCK blocks EVERYWHERE. For programs that keep a blacklist of addresses in a set of Redis. None by default: weir has no other sets. Give every node of a cluster the same."`

	socketFlags  `embed:"" group:"ports"`
	xdsFlags     `embed:"" group:"ports"`
	tlsFlags     `embed:"" group:"tls"`
	clusterFlags `embed:"" group:"cluster"`
	SentinelName string        `placeholder:"NAME" default:"mymaster" group:"cluster" help:"Name of the primary for clients that find it through Redis' Sentinel: every node answers SENTINEL. Give every node of a cluster the same."`
	Traces       tracing.Flags `embed:"" group:"logs"`

	CPUProfile string `name:"cpu-profile" placeholder:"FILE" group:"logs" help:"Write a CPU profile of the whole run to this file, for go tool pprof. Costs about 1 percent."`

	LogLevel  string `default:"info" enum:"debug,info,warn,error" group:"logs" help:"The lowest level to log: debug, info, warn or error."`
	LogFormat string `default:"text" enum:"text,json" group:"logs" help:"text or json, on standard error."`

	given map[string]string // by flag name: how the user gave it, see HowGiven
}

// Run is the life of a server: it checks, listens, loads and serves, and then stops in the reverse order.
func (s *serveCmd) Run() error {
	if err := s.check(); err != nil {
		return err
	}
	log := s.logger()
	password, err := s.readPassword()
	if err != nil {
		return err
	}
	if err := s.fitFiles(log); err != nil {
		return err
	}
	if s.EnvoyEnvironment {
		tellUnused(log, os.Environ())
	}
	keepPrivate()
	narrow(log, s.DataDir)
	policies, limits, err := s.openSources(log)
	if err != nil {
		return err
	}
	stopProfile, err := startCPUProfile(log, s.CPUProfile)
	if err != nil {
		return err
	}
	defer stopProfile()
	at, err := s.open(log, password != "" || s.UsersFile != "")
	if err != nil {
		return err
	}
	traces, err := s.Traces.Open(log, cmp.Or(s.NodeID, at.clients().String()))
	if err != nil {
		return errors.Join(err, at.close())
	}
	defer traces.Close(log)
	node, err := s.openNode(log, at, traces)
	if err != nil {
		return errors.Join(err, at.close())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	srv, err := server.New(s.serverConfig(log, password, at, traces, stop), node)
	if err != nil {
		return errors.Join(err, node.Close(), at.close())
	}
	defer policies.keep(node, &srv.PolicyFiles)()
	defer onHangup(func() {
		at.reload()
		s.reloadUsers(log, srv)
	})()
	beside, err := httpapi.New(srv.Service, srv, s.HTTPCheck, s.HTTPREST)
	if err != nil {
		return errors.Join(err, srv.Close(), node.Close(), at.close())
	}
	envoys := at.envoys(srv)
	envoys.SendFields(s.EnvoyFields)
	envoys.ReadyWhen(beside.Ready)
	beside.ServeEnvoys(envoys)
	defer limits.keep(envoys, &srv.EnvoyLimits)()
	failed := at.serve(srv, beside, envoys)
	defer s.announce(ctx, log, at, beside.Ready)()
	notify(log, nowReady)
	stopWatchdog := startWatchdog(log, at.clients().String(), node)

	err = untilItEnds(ctx, stop, failed, log)
	stopWatchdog() // systemd expects no message from here on
	notify(log, nowStopping)
	return errors.Join(err, shutdown(log, srv, beside, envoys, node))
}

// openSources reads the policies and the limits for Envoy before any slow step.
func (s *serveCmd) openSources(log *slog.Logger) (*policyLoader, *envoyLoader, error) {
	policies, err := openPolicies(s.Policies, log)
	if err != nil {
		return nil, nil, err
	}
	limits, err := s.envoyLimits(log)
	return policies, limits, err
}

// untilItEnds waits for a signal or the error of a listener. It then restores the default effect of signals.
func untilItEnds(ctx context.Context, stop func(), failed <-chan error, log *slog.Logger) error {
	defer stop()
	select {
	case <-ctx.Done():
		stop() // before the log states the effect of the next signal
		log.Info("stopping: answering received requests, then saving the state; a second signal stops at once")
		return nil
	case err := <-failed:
		return err
	}
}

// shutdown stops the parts in an order in which nothing is lost. No decision follows the last save, and every client
// gets its reply.
func shutdown(log *slog.Logger, srv *server.Server, beside *httpapi.Server, envoys *envoyrls.Server, node node) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	envoys.Shutdown(ctx)
	if err := srv.Shutdown(ctx); err != nil {
		log.Warn("some clients did not read their replies and were disconnected", "error", err)
	}
	err := errors.Join(srv.Close(), beside.Close(), node.Close())
	if err == nil {
		log.Info("stopped")
	}
	return err
}

func (s *serveCmd) nodeOptions(log *slog.Logger, memory int64, progress *persistence.Progress) persistence.Options {
	return persistence.Options{
		Source:            s.source(),
		DataDir:           s.DataDir,
		Progress:          progress,
		Logger:            log,
		TestClock:         s.TestClock,
		MaxDowntimeCredit: s.MaxDowntimeCredit,
		MaxCalendarStep:   s.MaxCalendarStep,
		Table:             s.tableOptions(memory),
	}
}

// tableOptions returns the options of the table, which are the same for a single node and a node of a cluster.
func (s *serveCmd) tableOptions(memory int64) engine.Options {
	return engine.Options{
		Shards:         engine.ShardsFor(runtime.GOMAXPROCS(0)),
		MaxMemoryBytes: s.MaxMemory.resolve(memory),
		WhenFull:       s.fullPolicy(),
		IDLifetimeNs:   int64(s.IDLifetime),
		EventsBytes:    int64(s.EventsMemory),
	}
}

func (s *serveCmd) serverConfig(log *slog.Logger, password string, at *ports, traces *tracing.Traces,
	stop func()) server.Config {
	return server.Config{
		Addr:           addrOf(at.plain),
		TLSAddr:        addrOf(at.secure),
		Password:       password,
		LoadUsers:      s.userLoader(),
		ProtectedMode:  s.ProtectedMode,
		EnableDebug:    s.DebugCommands || s.TestClock,
		Version:        version(),
		MaxClients:     s.MaxClients,
		MaxPerSource:   s.MaxPerSource,
		MaxBulkBytes:   int(s.MaxBulkBytes),
		MaxValueBytes:  int(s.MaxValueBytes),
		MaxOutputBytes: int(s.MaxOutputBytes),
		WriteTimeout:   s.WriteTimeout,
		Tracer:         traces.Tracer(),
		Logger:         log,
		OnShutdown:     stop,
		Redirect:       s.Redirect,
		BlacklistKey:   s.BlacklistKey,
		SentinelName:   s.SentinelName,
		DenyWhenFull:   s.fullPolicy() == engine.Deny,
	}
}

// announce logs how to reach the server. A server that runs alone is ready then. A node of
// a cluster logs that it accepts clients, and logs that it is ready when /readyz says so.
// It may never become ready; the function returned ends the wait.
func (s *serveCmd) announce(ctx context.Context, log *slog.Logger, at *ports, ready func() bool) (stop func()) {
	attrs := []any{"connect", at.connect()}
	for _, one := range []struct{ name, value string }{
		{"listen", addrOf(at.plain)}, {"tls_listen", addrOf(at.secure)}, {"http", at.webURL()}, {"rls", addrOf(at.rls)},
		{"unix_socket", addrOf(at.socket)}, {"http_socket", addrOf(at.webSocket)}, {"rls_socket", addrOf(at.rlsSocket)},
	} {
		if one.value != "" {
			attrs = append(attrs, one.name, one.value)
		}
	}
	if s.DataDir == "" {
		log.Warn("running without a data directory: a restart loses all state")
	}
	if !s.clustered() {
		log.Info("ready", attrs...)
		return func() {}
	}
	log.Info("accepting clients", attrs...)
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		if awaitReady(ctx, ready) {
			log.Info("ready", attrs...)
		}
	})
	return func() {
		cancel()
		waiting.Wait()
	}
}

// readyEvery is the interval at which a node checks whether it is ready: cheap, and short for a person who reads the
// log.
const readyEvery = 100 * time.Millisecond

// awaitReady returns true when the node is ready, or false if ctx ends first.
func awaitReady(ctx context.Context, ready func() bool) bool {
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for !ready() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (s *serveCmd) logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.LogLevel)); err != nil {
		panic("a level that the enum of --log-level lets through: " + s.LogLevel)
	}
	o := &slog.HandlerOptions{Level: level}
	if s.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(os.Stderr, o))
	}
	return slog.New(slog.NewTextHandler(os.Stderr, o))
}
