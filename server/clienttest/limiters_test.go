package clienttest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/freeport"
)

// limiterLanguages are the programs that call the limiter libraries whose scripts weir recognises, by language. The
// arguments of a program are a library, a port, a seed, a number of calls, and for a library that speaks Upstash's REST
// form the URL. It prints a line for each answer. The lines must be the same for weir and for the judge.
var limiterLanguages = []language{
	{
		name: "limiters/node", tools: []string{"node", "npm"},
		install: [][]string{{"npm", "ci", "--no-audit", "--no-fund", "--legacy-peer-deps"}},
		program: []string{"node", "drive.mjs"},
		clients: []string{
			"rate-limiter-flexible", "rate-limiter-flexible-node-redis",
			"rate-limit-redis", "rate-limit-redis-5", "rate-limit-redis-5-reset", "rate-limit-redis-4.2.2",
			"rate-limit-redis-4.2.0",
			"fastify", "fastify-10.2", "fastify-10.1", "fastify-9", "nest", "nest-kkoomen", "nest-kkoomen-0.3.3",
			"nest-kkoomen-0.4.4", "hono",
			"hono-reset", "redis-gcra", "redis-semaphore",
			"async-ratelimiter", "async-ratelimiter-1000", "async-ratelimiter-1.5.2", "koa-ratelimit",
			"upstash", "upstash-2.0.7", "upstash-2.0.8", "upstash-2.1.0", "upstash-2.2.0",
		},
	},
	{
		name: "limiters/python", tools: []string{"python3"},
		install: [][]string{
			{"python3", "-m", "venv", "venv"},
			{"venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", "requirements.txt"},
			oldLimits("4.8.0"), oldLimits("3.14.1"), oldLimits("3.6.0"), oldLimits("3.1.6"),
		},
		program: []string{"venv/bin/python", "drive.py"},
		clients: []string{"limits", "limits-sliding", "limits-moving", "limits-moving-4.8.0", "limits-moving-3.14.1",
			"limits-moving-3.6.0", "limits-moving-3.1.6", "fastapi-limiter", "redis-py-lock"},
	},
	{
		name: "limiters/php", tools: []string{"apt-get", "dpkg"},
		install: [][]string{{"sh", "install.sh"}},
		program: []string{"./php", "drive.php"},
		clients: []string{"laravel-throttle", "laravel-funnel"},
	},
	{
		name: "limiters/java", tools: []string{"java", "javac", "mvn"},
		install: [][]string{{"mvn", "--quiet", "--batch-mode", "compile", "dependency:copy-dependencies"}},
		program: []string{"java", "-cp", "target/classes:target/dependency/*", "Drive"},
		clients: []string{"spring", "spring-4.2.0", "spring-3.1.4", "spring-3.0.3", "spring-2.2.2"},
	},
	{
		name: "limiters/golang", tools: []string{"go"},
		install: [][]string{{"go", "build", "-o", "drive", "."}},
		program: []string{"./drive"},
		clients: []string{"ulule", "go-zero-period", "go-zero-token", "redsync"},
	},
}

// oldLimits installs an old release of limits beside the current one.
func oldLimits(release string) []string {
	return []string{"venv/bin/pip", "install", "--quiet", "--quiet", "--disable-pip-version-check", "--no-deps",
		"--target", "limits-" + release, "limits==" + release}
}

// limiterCalls is the number of calls of each library.
const limiterCalls = "2000"

// TestForeignLimiters has a subtest for each library, such as TestForeignLimiters/limiters/node/fastify.
func TestForeignLimiters(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: limiter libraries of other languages run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	t.Parallel()
	for _, l := range limiterLanguages {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			dir := l.prepare(t)
			for _, library := range l.clients {
				t.Run(library, func(t *testing.T) {
					web := freeport.Addr(t)
					weirAddr, judgeAddr := twins(t, "--http", web, "--http-rest")
					want := l.drive(t, dir, library, judgeAddr, restJudge(t, judgeAddr))
					got := l.drive(t, dir, library, weirAddr, "http://"+web)
					require.Equal(t, limiterCalls, strconv.Itoa(len(want)), "answers")
					for i := range want {
						require.Equal(t, want[i], got[i], "call %d", i)
					}
				})
			}
		})
	}
}

// drive runs the program with a library against a server, and returns the lines that it printed.
func (l language) drive(t *testing.T, dir, library, addr, rest string) []string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	argv := append(l.program[:len(l.program):len(l.program)], library, port, "1", limiterCalls, rest)
	if filepath.Base(argv[0]) != argv[0] {
		argv[0] = filepath.Join(dir, argv[0])
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", &stderr)
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}
