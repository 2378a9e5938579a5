package walls_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/weir-project/weir"
	root   = "../.." // of the module
)

// wall lists the packages of the module that a package may import, and the reason. A name that ends with /... stands
// for every package below it, except those with a line of their own.
type wall struct {
	of      string
	imports string // separated by spaces
	why     string
}

// walls has a line for every package, in the order of names. A new package needs a line.
var walls = []wall{
	{"bench", "bench/connpoll bench/machine bench/servers",
		"measures weir from outside, as it measures its competitors"},
	{"bench/connpoll", "", "polls connections from one thread"},
	{"bench/machine", "", "reads what the operating system tells"},
	{"bench/servers", "internal/freeport", "starts and asks servers and knows nothing of measuring"},
	{"certs", "", "reads and renews certificates for servers and clients alike"},
	{"certs/certtest", "certs", "makes certificates for tests of any package"},
	{"client",
		"client/internal/keys engine internal/millis latency limits",
		"keeps a limiter of its own for when no server answers"},
	{"client/clientprom", "client", "exports the client's metrics, so that only its users need Prometheus"},
	{"client/grpclimit", "client client/internal/keys client/internal/quota httpfields",
		"limits calls of gRPC, so that only its users need gRPC"},
	{"client/httplimit", "client client/internal/keys client/internal/quota engine httpfields",
		"limits requests of net/http, with rates as the engine parses them"},
	{"client/internal/keys", "internal/clientaddr", "turns what identifies a caller into a key"},
	{"client/internal/quota", "client httpfields", "says what a decision means to people"},
	{"cmd/weir",
		"certs engine internal/cli/... internal/faults internal/filewatch internal/offheap limiter persistence " +
			"policyfile raftstore raftstore/peer raftstore/router server server/acl server/commands server/envoyrls " +
			"server/envoyrls/rules server/envoyrls/xds server/httpapi server/scripts server/service",
		"wires the server and its tools together, and carries no load generator"},
	{"cmd/weir-bench", "bench bench/machine internal/cli/buildinfo internal/cli/cmdline internal/manpage",
		"measures weir as another process"},
	{"engine",
		"engine/hashslot engine/internal/arena engine/internal/arith engine/internal/calendar " +
			"engine/internal/codec engine/internal/events engine/internal/heavy engine/internal/leases " +
			"engine/internal/rule engine/internal/script engine/internal/store " +
			"engine/internal/trie engine/internal/unitlog engine/network",
		"decides: without a clock, a disk or a network every node computes the same"},
	{"engine/hashslot", "engine/internal/rule", "maps keys to slots as Redis Cluster does, whatever their database"},
	{"engine/internal/allocations",
		"engine/internal/arena engine/internal/arith engine/internal/codec " +
			"engine/internal/rule",
		"keeps the allocations of a limiter, and gives nothing back"},
	{"engine/internal/arena", "internal/offheap", "keeps slots of bytes and does not know what they hold"},
	{"engine/internal/arith", "", "computes with numbers whose meaning its users know"},
	{"engine/internal/calendar",
		"engine/internal/arith engine/internal/rule",
		"finds the windows of a calendar"},
	{"engine/internal/codec", "", "reads stored numbers and bytes"},
	{"engine/internal/events", "engine/internal/codec", "keeps a log, and does not know why an event is written"},
	{"engine/internal/heavy", "", "counts keys and knows no limit"},
	{"engine/internal/leases",
		"engine/internal/arena engine/internal/arith engine/internal/codec " +
			"engine/internal/rule",
		"keeps the leases of a key, and decides nothing"},
	{"engine/internal/rule",
		"engine/internal/arith engine/internal/codec",
		"says what limits are, without state"},
	{"engine/internal/script",
		"engine/internal/arena engine/internal/arith engine/internal/codec " +
			"engine/internal/rule engine/internal/unitlog",
		"computes what a script does to its key, and finds no keys"},
	{"engine/internal/store",
		"engine/internal/allocations engine/internal/arena engine/internal/arith " +
			"engine/internal/codec engine/internal/leases engine/internal/rule " +
			"engine/internal/script engine/internal/unitlog internal/offheap",
		"keeps entries, evicts and stores them, and decides nothing"},
	{"engine/internal/trie", "", "keeps values by their hashes, and knows none of them"},
	{"engine/internal/unitlog",
		"engine/internal/arena engine/internal/arith engine/internal/codec " +
			"engine/internal/rule",
		"keeps the log of a window, and decides nothing"},
	{"engine/network", "", "reads addresses, and blocks none"},
	{"examples/...", "client client/httplimit httpfields",
		"shows what a user writes, with what a user imports"},
	{"examples/systems/levels/compare", "persistence server", "runs a server in its own process, to advance its clock"},
	{"httpfields", "internal/millis", "writes and reads HTTP header fields for server and client"},
	{"internal/cli/buildinfo", "", "says which weir a program is"},
	{"internal/cli/cluster", "internal/cli/cmdline internal/cli/remote internal/cli/terminal raftstore/placement",
		"asks a node, as any client does"},
	{"internal/cli/cmdline", "internal/nearest", "reads the command lines of all programs and knows no command"},
	{"internal/cli/demo", "internal/cli/cluster internal/cli/listener internal/cli/remote",
		"starts the program as processes, and asks them"},
	{"internal/cli/doctor",
		"certs internal/cli/buildinfo internal/cli/cmdline internal/cli/healthcheck internal/cli/listener " +
			"internal/cli/remote internal/cli/terminal internal/millis persistence raftstore",
		"looks at flags, the server that has them and its directory, and serves nothing"},
	{"internal/cli/envoy", "internal/cli/terminal server/envoyrls/rules",
		"checks files as a server reads them, without one"},
	{"internal/cli/events", "internal/cli/remote", "reads events as any client does, and delivers them"},
	{"internal/cli/healthcheck", "", "asks over HTTP"},
	{"internal/cli/keys", "internal/cli/policy internal/cli/remote internal/cli/terminal internal/millis",
		"asks a server, also which policies count a key"},
	{"internal/cli/listener", "internal/cli/terminal", "listens, and says who else does"},
	{"internal/cli/migrate",
		"engine internal/cli/cmdline internal/cli/remote internal/cli/terminal persistence server/commands " +
			"server/scripts server/service",
		"sends what clients of another server send to a weir in memory, which refuses as every weir does"},
	{"internal/cli/policy", "internal/cli/cmdline internal/cli/remote internal/cli/terminal limiter policyfile " +
		"server/commands",
		"compares a file with a server, whose bounds and errors it knows"},
	{"internal/cli/remote", "certs internal/cli/cmdline internal/cli/terminal internal/millis limiter",
		"reaches a server, and reads how old the answer of a node is"},
	{"internal/cli/terminal", "", "writes text that no terminal obeys"},
	{"internal/cli/top",
		"internal/cli/cmdline internal/cli/healthcheck internal/cli/listener internal/cli/remote " +
			"internal/cli/terminal server/httpapi",
		"shows the status that a server reports"},
	{"internal/cli/tracing", "internal/cli/buildinfo raftstore server/commands",
		"makes spans of what servers and logs of clusters tell"},
	{"internal/clientaddr", "", "tells clients apart by their addresses"},
	{"internal/clustertest/chaos", "internal/clustertest/ledger internal/freeport",
		"judges processes from outside and believes nothing that they say"},
	{"internal/clustertest/ledger", "", "judges histories without the code that made them"},
	{"internal/clustertest/sim",
		"engine engine/hashslot internal/clustertest/ledger internal/faults internal/guards limiter persistence " +
			"raftstore raftstore/peer raftstore/router raftstore/sharedlog raftstore/wallog",
		"runs real nodes on simulated disks, networks and clocks"},
	{"internal/connlimit", "internal/clientaddr", "shares the connections of a port between its users"},
	{"internal/documents", "", "reads examples out of documents for tests"},
	{"internal/faults", "", "names the mistakes that tests switch on"},
	{"internal/filewatch", "", "notices changes of files, and knows nothing of what they mean"},
	{"internal/freeport", "", "reserves ports for tests and benchmarks"},
	{"internal/guards", "", "counts refusals of guards against races, which the simulator reports"},
	{"internal/logtest", "", "keeps what a program writes, for tests"},
	{"internal/manpage", "internal/cli/buildinfo internal/cli/cmdline",
		"writes man pages from a command line; no part of weir"},
	{"internal/millis", "", "converts milliseconds"},
	{"internal/mutants", "", "changes source text and runs its tests"},
	{"internal/nearest", "", "finds what a mistyped word was meant to be"},
	{"internal/offheap", "", "maps memory and does not know what it holds"},
	{"internal/pages", "", "checks documents"},
	{"internal/quote", "", "makes bytes of a client fit for replies and logs"},
	{"internal/race", "", "tells a test whether the race detector is on, and skips it"},
	{"internal/rlspb", "", "is generated from Envoy's messages"},
	{"internal/testrun", "", "runs tests"},
	{"internal/walls", "", "tests the imports of all packages, from outside"},
	{"internal/weirbin", "", "builds the program for tests"},
	{"internal/weirproc", "internal/freeport internal/weirbin", "runs the program as its users do, for tests"},
	{"internal/weirtest", "engine internal/freeport persistence server server/envoyrls server/httpapi",
		"runs a server in a test's own process"},
	{"latency", "", "counts durations for every part that measures some"},
	{"limiter", "engine/hashslot engine latency",
		"is the contract between what decides and what serves, and holds only types"},
	{"limits", "engine internal/quote",
		"is the grammar of limits for server, policy files and client, and light enough for a client"},
	{"persistence", "engine/hashslot engine latency limiter",
		"stores what the engine decides; protocols and clusters are built on it"},
	{"policyfile",
		"engine engine/hashslot internal/filewatch internal/nearest limiter server server/commands server/policytext",
		"reads policies from a file with the parser of the commands"},
	{"raftstore",
		"engine engine/hashslot internal/faults limiter persistence raftstore/internal/... raftstore/peer " +
			"raftstore/wire",
		"replicates the engine; protocols are built on it"},
	{"raftstore/internal/away",
		"engine engine/hashslot limiter raftstore/internal/calls raftstore/internal/host " +
			"raftstore/internal/membership raftstore/internal/pipeline raftstore/internal/queue " +
			"raftstore/internal/timers raftstore/peer raftstore/wire",
		"reaches the groups of which a node has no replica"},
	{"raftstore/internal/budget", "", "divides the memory bound of a host among its groups"},
	{"raftstore/internal/calls",
		"limiter raftstore/internal/failure",
		"names the calls between nodes and their outcomes"},
	{"raftstore/internal/consensus",
		"limiter raftstore/internal/identity",
		"asks the Raft library what the parts of a group want to know"},
	{"raftstore/internal/detector", "internal/faults",
		"judges which hosts are silent, and knows neither Raft nor network"},
	{"raftstore/internal/divergence",
		"raftstore/internal/calls raftstore/internal/failure raftstore/internal/fsm raftstore/internal/timers " +
			"raftstore/peer",
		"finds the node whose results differ from those of a majority"},
	{"raftstore/internal/failure",
		"limiter persistence",
		"names the errors of a node, and says whether it may start again"},
	{"raftstore/internal/format",
		"engine limiter raftstore/internal/failure raftstore/wire",
		"agrees with all members on the form of entries"},
	{"raftstore/internal/fsm",
		"engine/hashslot engine internal/faults internal/guards limiter persistence raftstore/internal/consensus " +
			"raftstore/internal/failure raftstore/internal/identity raftstore/internal/images " +
			"raftstore/internal/raftlog raftstore/wire",
		"applies the log to the table: a pure function of its entries"},
	{"raftstore/internal/host",
		"engine/hashslot engine internal/faults limiter persistence raftstore/internal/budget " +
			"raftstore/internal/calls raftstore/internal/failure raftstore/internal/identity " +
			"raftstore/internal/logging raftstore/internal/permit raftstore/internal/queue " +
			"raftstore/internal/raftlog raftstore/internal/timers raftstore/peer raftstore/sharedlog " +
			"raftstore/wallog raftstore/wire",
		"holds what belongs to the process and not to a group"},
	{"raftstore/internal/identity",
		"internal/guards persistence raftstore/internal/failure raftstore/peer raftstore/wire",
		"says which node a data directory belongs to"},
	{"raftstore/internal/images",
		"internal/faults internal/guards persistence",
		"finds the snapshots of the Raft library in images"},
	{"raftstore/internal/leadership",
		"engine internal/faults internal/guards limiter persistence raftstore/internal/consensus " +
			"raftstore/internal/fsm raftstore/internal/host raftstore/internal/identity raftstore/internal/queue " +
			"raftstore/internal/raftlog raftstore/internal/timers raftstore/peer raftstore/wire",
		"leads: keeps the clock that stamps entries, and hands over"},
	{"raftstore/internal/logging", "", "passes on what the Raft library logs"},
	{"raftstore/internal/membership",
		"raftstore/wire internal/guards limiter raftstore/internal/calls raftstore/internal/consensus " +
			"raftstore/internal/failure raftstore/internal/fsm raftstore/internal/host raftstore/internal/identity " +
			"raftstore/internal/leadership raftstore/internal/timers raftstore/peer " +
			"raftstore/placement",
		"joins a cluster, takes nodes in and removes them"},
	{"raftstore/internal/permit", "", "lets one group of a process take a snapshot at a time"},
	{"raftstore/internal/pipeline",
		"engine internal/faults internal/guards limiter raftstore/internal/budget " +
			"raftstore/internal/calls raftstore/internal/consensus raftstore/internal/fsm raftstore/internal/host " +
			"raftstore/internal/leadership raftstore/internal/queue raftstore/internal/quorum " +
			"raftstore/internal/timers raftstore/peer raftstore/wire",
		"takes decisions through the log"},
	{"raftstore/internal/queue",
		"engine limiter raftstore/internal/failure raftstore/peer raftstore/wire",
		"gathers operations into batches until the pipeline takes them"},
	{"raftstore/internal/quorum",
		"internal/guards limiter raftstore/internal/timers",
		"confirms with a majority that no later leader was elected"},
	{"raftstore/internal/raftlog",
		"latency persistence raftstore/internal/failure raftstore/internal/timers",
		"ends the node at a write that fails, and notes when entries arrive"},
	{"raftstore/internal/readindex",
		"engine internal/faults internal/guards limiter raftstore/internal/calls " +
			"raftstore/internal/consensus raftstore/internal/failure raftstore/internal/fsm " +
			"raftstore/internal/leadership raftstore/internal/timers raftstore/peer",
		"makes reads linearizable"},
	{"raftstore/internal/recovery",
		"internal/faults persistence raftstore/internal/consensus raftstore/internal/failure raftstore/internal/fsm " +
			"raftstore/internal/identity raftstore/internal/images raftstore/internal/raftlog",
		"brings a directory into the state that the Raft library starts from"},
	{"raftstore/internal/snapshots",
		"engine latency limiter persistence raftstore/internal/failure raftstore/internal/fsm " +
			"raftstore/internal/timers",
		"decides when to take a snapshot"},
	{"raftstore/internal/timers", "", "calls the checks of all groups, and holds the periods that several parts share"},
	{"raftstore/internal/transport",
		"internal/faults raftstore/internal/images raftstore/internal/raftlog raftstore/peer",
		"guards the transport of the Raft library against its known defects"},
	{"raftstore/internal/watchdog",
		"raftstore/internal/consensus raftstore/internal/failure raftstore/internal/fsm " +
			"raftstore/internal/raftlog raftstore/internal/timers",
		"ends a node that is stuck"},
	{"raftstore/peer", "internal/connlimit", "carries bytes between nodes and knows nothing of their meaning"},
	{"raftstore/placement", "", "decides where replicas are, and reads and moves nothing"},
	{"raftstore/router",
		"engine engine/hashslot internal/faults limiter persistence raftstore raftstore/internal/away " +
			"raftstore/internal/calls raftstore/internal/detector raftstore/internal/failure " +
			"raftstore/internal/host raftstore/internal/identity raftstore/internal/timers raftstore/peer " +
			"raftstore/placement",
		"stands in front of the groups of a node and of those on other nodes, and replicates nothing itself"},
	{"raftstore/sharedlog", "persistence raftstore/wallog",
		"gives each group a part of one log, and knows nothing of groups"},
	{"raftstore/wallog", "persistence", "keeps Raft's log, in directories made as those of the state are"},
	{"raftstore/wire", "engine", "encodes operations and decisions for other nodes"},
	{"server", "internal/connlimit limiter server/commands server/evloop server/resp",
		"listens, reads and writes, and knows no command"},
	{"server/acl", "engine internal/quote", "knows users, and commands by their numbers only"},
	{"server/arg",
		"engine engine/network internal/clientaddr internal/quote limits server/resp",
		"reads single arguments into what the engine takes, and knows no command"},
	{"server/commands",
		"engine engine/hashslot engine/network internal/connlimit internal/millis internal/nearest " +
			"internal/quote limiter limits server/acl server/arg server/info server/policytext server/resp " +
			"server/scripts server/service server/syntax server/timezone",
		"carries out commands for whatever stands under a session, and opens no connection"},
	{"server/envoyrls",
		"engine httpfields internal/connlimit internal/rlspb server/acl server/arg server/envoyrls/rules server/resp " +
			"server/service",
		"speaks to Envoys, and needs only the layer under all protocols"},
	{"server/envoyrls/rules", "internal/filewatch internal/nearest internal/rlspb",
		"reads and searches a configuration of limits, and decides and counts nothing"},
	{"server/envoyrls/xds", "internal/rlspb server/envoyrls/rules",
		"gets a configuration over the network, and neither keeps nor judges it"},
	{"server/evloop", "", "polls sockets and knows no protocol"},
	{"server/httpapi",
		"engine httpfields internal/connlimit internal/millis internal/quote internal/rlspb latency limiter " +
			"limits server/acl server/arg server/metrics server/resp server/service",
		"speaks to proxies, probes and people, and needs only the layer under all protocols"},
	{"server/info", "engine/hashslot engine limiter server/service",
		"reads the layer under all protocols and writes what it reads as Redis does"},
	{"server/metrics", "engine latency limiter server/service", "reads the counters of the layer under all protocols"},
	{"server/policytext",
		"engine limits server/arg server/timezone",
		"reads and writes policies for commands and for files, which know no connection"},
	{"server/resp", "", "reads and writes bytes and knows no command"},
	{"server/resp/resptest", "", "has streams for tests of packages that read the protocol"},
	{"server/scripts",
		"engine internal/quote limits server/resp",
		"recognises scripts by their text and knows no client"},
	{"server/servertest", "engine engine/hashslot internal/rlspb limiter",
		"stands in for limiters and clients in tests of the packages beside it"},
	{"server/service",
		"engine httpfields internal/connlimit internal/millis internal/offheap internal/quote latency limiter " +
			"limits server/acl server/arg server/resp",
		"makes, counts and tells decisions for every protocol, and knows none of them"},
	{"server/syntax", "", "reads the syntax lines of commands and knows no command"},
	{"server/timezone", "engine limits", "finds windows in calendars"},
}

// wallOf returns the line for a package: its own, or that of the closest /... above it.
func wallOf(pkg string) (found wall, ok bool) {
	for _, w := range walls {
		if covers(w.of, pkg) && (w.of == pkg || len(w.of) > len(found.of)) {
			found, ok = w, true
		}
		if w.of == pkg {
			break
		}
	}
	return found, ok
}

// covers reports whether a name stands for a package: its own, or one with /... above it.
func covers(name, pkg string) bool {
	above, isTree := strings.CutSuffix(name, "...")
	return name == pkg || isTree && strings.HasPrefix(pkg+"/", above)
}

// TestMain stats every Go file of the module. The test cache does not see what go list reads. Without this it would
// repeat the last result after another package has changed.
func TestMain(m *testing.M) {
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".go") {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// goList runs go list in the root of the module and returns what it prints.
func goList(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-pgo=off"}, args...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	return string(out)
}

// TestImportsKeepTheWalls checks that each package imports only what its line names. A package without a line and an
// unnecessary entry are errors. Tests may import anything.
func TestImportsKeepTheWalls(t *testing.T) {
	used := map[wall][]string{}
	packages := goList(t, "-e", "-f", `{{if .GoFiles}}{{.ImportPath}} {{join .Imports " "}}{{end}}`, "./...")
	for line := range strings.Lines(packages) {
		var ours []string
		for _, path := range strings.Fields(line) {
			if pkg, ok := strings.CutPrefix(path, module+"/"); ok {
				ours = append(ours, pkg)
			}
		}
		pkg, imports := ours[0], ours[1:]
		w, ok := wallOf(pkg)
		if !assert.True(t, ok, "package %s has no line in walls: say what it may import, and why", pkg) {
			continue
		}
		used[w] = append(used[w], imports...)
		for _, path := range imports {
			allowed := func(name string) bool { return covers(name, path) }
			assert.True(t, slices.ContainsFunc(strings.Fields(w.imports), allowed),
				"%s imports %s, which its line does not name: it %s", pkg, path, w.why)
		}
	}
	for _, w := range walls {
		imports, exists := used[w]
		if !assert.True(t, exists, "walls has a line for %s, where no package is", w.of) {
			continue
		}
		for _, name := range strings.Fields(w.imports) {
			needed := func(path string) bool { return covers(name, path) }
			assert.True(t, slices.ContainsFunc(imports, needed), "the line for %s allows %s, which it does not need",
				w.of, name)
		}
	}
	inOrder := slices.IsSortedFunc(walls, func(a, b wall) int { return strings.Compare(a.of, b.of) })
	assert.True(t, inOrder, "walls is out of order")
}

// TestEngineIsPure checks that the engine and the packages below it import only themselves and the standard library.
// Packages for clocks, sockets, files and loggers, and math/rand, are forbidden. hash/maphash is allowed: its seed
// changes no answer, except that it influences which entries a full table evicts. internal/offheap is allowed: it maps
// memory, and tells nothing of the machine.
func TestEngineIsPure(t *testing.T) {
	imports := strings.Fields(goList(t, "-f", `{{join .Imports "\n"}}`, "./engine/..."))
	require.NotEmpty(t, imports)
	for _, path := range imports {
		if strings.HasPrefix(path, module+"/engine/") || path == module+"/internal/offheap" {
			continue
		}
		first, _, _ := strings.Cut(path, "/")
		require.NotContains(t, first, ".", "%s must be of the standard library", path)
		for _, banned := range []string{"time", "net", "os", "log", "math/rand", "syscall", "io/fs",
			"runtime", "unsafe"} {
			require.False(t, path == banned || strings.HasPrefix(path, banned+"/"), "engine imports %s", path)
		}
	}
}
