package clienttest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/envoyrls/rules"
)

// The programs of envoyproxy/ratelimit, in the version that weir is compared with.
const (
	ratelimitModule = "github.com/envoyproxy/ratelimit/src/"
	ratelimitAt     = "@v1.4.1-0.20260122083618-3fb702589d36"
)

// TestForeignRateLimitService asks envoyproxy/ratelimit on Redis 7 and weir the same random requests under the same
// configuration, always both within one second of the clock. The first half of the requests has one hit each. Then
// statuses, codes, fields and counters must be equal. The second half has other numbers of hits and limits that
// change, so that it shows that a denied request counts there and not in weir: a model of both rules must predict both
// answers. WEIRTEST_RATELIMIT_REQUESTS is the number of requests.
func TestForeignRateLimitService(t *testing.T) {
	if os.Getenv("WEIRTEST_CLIENTS") == "" {
		t.Skip("SKIPPED: limiter libraries of other languages run with WEIRTEST_CLIENTS=1 (make test-clients)")
	}
	requests := 1000
	if n := os.Getenv("WEIRTEST_RATELIMIT_REQUESTS"); n != "" {
		var err error
		requests, err = strconv.Atoi(n)
		require.NoError(t, err)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	c := startComparison(t, seed)
	for _, oneHit := range []bool{true, false} {
		for left := requests / 2; left > 0; left -= blockRequests {
			c.block(min(left, blockRequests), oneHit)
		}
	}
	c.values()
	t.Logf("%d requests, %d descriptors with a limit, %d over it; %d differed because denied hits count there; "+
		"%d blocks repeated", c.asked, c.limited, c.over, c.documented, c.repeated)
	require.Greater(t, c.limited, c.asked/2, "too few descriptors had a limit")
	require.Greater(t, c.over, c.asked/10, "too few descriptors were over their limit")
	require.Positive(t, c.documented)
}

const (
	// blockRequests are the requests between two comparisons of all counters.
	blockRequests = 2500
	// requestsOfCounts are the requests after which both forget what they have counted.
	requestsOfCounts = 250
	// flushEvery is how often the other program publishes its counters, and flushWait bounds the wait for them.
	flushEvery = 200 * time.Millisecond
	flushWait  = 30 * time.Second
	// maxRepeats bounds how often a block is repeated because a pair of answers was not of one second.
	maxRepeats = 10
)

// comparison is both servers, and a model of what they have counted.
type comparison struct {
	*testing.T
	rand         *rand.Rand
	theirs, weir rlsv3.RateLimitServiceClient
	conns        [2]*grpc.ClientConn // of theirs and weir
	metrics      [2]string           // URLs
	config       *rules.Config
	flush        func()                                         // forgets the counts of both
	pool         map[string][]*descriptorv3.RateLimitDescriptor // that requests to random domains have, by domain
	counts       map[string]uint64

	hits float64 // under a limit, since the start

	asked, limited, over, documented, repeated int
}

func startComparison(t *testing.T, seed uint64) *comparison {
	c := &comparison{T: t, rand: rand.New(rand.NewPCG(seed, 0)), counts: map[string]uint64{},
		pool: map[string][]*descriptorv3.RateLimitDescriptor{}}
	root := t.TempDir()
	dir := filepath.Join(root, "ratelimit", "config")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for name, text := range c.configuration() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	files, err := rules.Open([]string{dir})
	require.NoError(t, err)
	c.config, err = rules.Parse(files, false)
	require.NoError(t, err)

	memoryOnly := func(line string) bool { return strings.Contains(line, "without a data directory") }
	w := newWeir(t, freeport.Addr(t), memoryOnly, "--data-dir", "", "--rls=127.0.0.1:0", "--envoy-config", dir,
		"--envoy-fields")
	w.HTTP = freeport.Addr(t)
	w.Start()
	redisSocket := startRedis(t)
	theirs := startRatelimit(t, root, redisSocket)
	rdb := redis.NewClient(&redis.Options{Network: "unix", Addr: redisSocket})
	t.Cleanup(func() { _ = rdb.Close() })
	c.flush = func() {
		require.NoError(t, rdb.FlushAll(t.Context()).Err())
		_, err := w.ask("FLUSHALL")
		require.NoError(t, err)
		clear(c.counts)
	}
	c.conns = [2]*grpc.ClientConn{dialService(t, theirs.grpc), dialService(t, w.rlsAddr())}
	c.theirs, c.weir = rlsv3.NewRateLimitServiceClient(c.conns[0]), rlsv3.NewRateLimitServiceClient(c.conns[1])
	c.metrics = [2]string{"http://" + theirs.scrape + "/metrics", "http://" + w.HTTP + "/metrics"}
	return c
}

// ratelimitProgram builds a program of envoyproxy/ratelimit and returns its path.
func ratelimitProgram(t *testing.T, name string) string {
	bin, module := t.TempDir(), ratelimitModule+name+ratelimitAt
	build := exec.CommandContext(t.Context(), "go", "install", module)
	build.Dir, build.Env = bin, append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
	out, err := build.CombinedOutput()
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: %s cannot be downloaded: %v\n%s", module, err, out)
	}
	require.NoError(t, err, "%s", out)
	return filepath.Join(bin, name)
}

// ratelimit is envoyproxy/ratelimit as a process that can restart.
type ratelimit struct {
	t                         *testing.T
	grpc, http, debug, scrape string // addresses
	cmd                       *exec.Cmd
	env                       []string
	program                   string
	log                       strings.Builder
}

// startRatelimit builds and starts envoyproxy/ratelimit with Redis.
func startRatelimit(t *testing.T, root, redis string) *ratelimit {
	addrs := freeport.Addrs(t, 4)
	port := func(i int) string { return addrs[i][strings.LastIndexByte(addrs[i], ':')+1:] }
	r := &ratelimit{t: t, program: ratelimitProgram(t, "service_cmd"), http: addrs[0], grpc: addrs[1],
		debug: addrs[2], scrape: addrs[3]}
	r.env = append(os.Environ(), "USE_STATSD=false", "USE_PROMETHEUS=true", "PROMETHEUS_ADDR="+r.scrape,
		"STATS_FLUSH_INTERVAL="+flushEvery.String(), "RUNTIME_ROOT="+root, "RUNTIME_SUBDIRECTORY=ratelimit",
		"REDIS_SOCKET_TYPE=unix",
		"REDIS_URL="+redis, "HOST=127.0.0.1", "PORT="+port(0), "GRPC_HOST=127.0.0.1", "GRPC_PORT="+port(1),
		"DEBUG_HOST=127.0.0.1", "DEBUG_PORT="+port(2), "LIMIT_RESPONSE_HEADERS_ENABLED=true")
	r.start()
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Log(r.log.String())
		}
	})
	return r
}

// start starts the process and waits until it answers.
func (r *ratelimit) start() {
	r.cmd = exec.Command(r.program)
	r.cmd.Env, r.cmd.Stdout, r.cmd.Stderr = r.env, &r.log, &r.log
	require.NoError(r.t, r.cmd.Start())
	require.Eventually(r.t, func() bool {
		out, err := http.Get("http://" + r.http + "/healthcheck")
		if err == nil {
			_ = out.Body.Close()
		}
		return err == nil && out.StatusCode == http.StatusOK
	}, testWait, testWait/1000)
}

// stop asks the process to end, and waits for it.
func (r *ratelimit) stop() {
	_ = r.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(testWait, func() { _ = r.cmd.Process.Kill() }) // it waits for Envoys without an end
	defer late.Stop()
	_ = r.cmd.Wait()
}

func dialService(t *testing.T, addr string) *grpc.ClientConn {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// block sends some requests, and compares the counters that they changed.
func (c *comparison) block(requests int, oneHit bool) {
	before := [2]map[string]float64{c.settled(0), c.settled(1)}
	for !c.pairs(requests, oneHit) {
		c.repeated++
		require.Less(c, c.repeated, maxRepeats, "this machine is too busy to ask both within one second")
		before = [2]map[string]float64{c.settled(0), c.settled(1)}
	}
	theirs, weir := since(before[0], c.settled(0), oneHit), since(before[1], c.settled(1), oneHit)
	require.NotEmpty(c, weir)
	require.Equal(c, theirs, weir, "the counters differ")
}

// settled returns the counters of a server when they have all hits. The other program publishes them at intervals, and
// weir makes no new page for each scrape of many.
func (c *comparison) settled(i int) map[string]float64 {
	for end := time.Now().Add(flushWait); ; time.Sleep(flushEvery) {
		var hits float64
		for name, value := range c.scrape(i) {
			if strings.HasPrefix(name, "total_hits") {
				hits += value
			}
		}
		if hits == c.hits {
			break
		}
		require.True(c, time.Now().Before(end), "%v of %v hits are in the counters of %s", hits, c.hits, c.metrics[i])
	}
	time.Sleep(2 * flushEvery) // until the other counters of the last hit are published too
	return c.scrape(i)
}

// pairs asks both servers. It returns false if the clock passed a second between two answers.
func (c *comparison) pairs(requests int, oneHit bool) bool {
	for i := range requests {
		if i%requestsOfCounts == 0 {
			c.flush()
			c.fill()
		}
		in := c.request(oneHit)
		now := c.early()
		theirs, err := c.theirs.ShouldRateLimit(c.Context(), in)
		require.NoError(c, err)
		weir, err := c.weir.ShouldRateLimit(c.Context(), in)
		require.NoError(c, err)
		for i, d := range in.Descriptors {
			if theirs.Statuses[i].CurrentLimit != nil {
				c.hits += float64(hitsOf(in, d))
			}
		}
		if time.Now().Unix() != now {
			return false
		}
		c.judge(in, now, theirs, weir)
	}
	return true
}

// values checks the requests that weir decides differently on purpose.
func (c *comparison) values() {
	c.flush()
	left := func(service rlsv3.RateLimitServiceClient, hits uint64, key, value string) uint32 {
		out, err := service.ShouldRateLimit(c.Context(), &rlsv3.RateLimitRequest{Domain: "shop",
			Descriptors: []*descriptorv3.RateLimitDescriptor{{HitsAddend: wrapperspb.UInt64(hits),
				Entries: []*descriptorv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}}}})
		require.NoError(c, err)
		return out.Statuses[0].LimitRemaining
	}
	for _, address := range []string{"2001:db8::1", "2001:db8::2"} { // of one client
		require.EqualValues(c, 6, left(c.theirs, 4, "remote_address", address))
	}
	require.EqualValues(c, 6, left(c.weir, 4, "remote_address", "2001:db8::1"))
	require.EqualValues(c, 2, left(c.weir, 4, "remote_address", "2001:db8::2"))
	for _, after := range []struct{ hits, theirs, weir uint64 }{{17, 3, 3}, {5, 0, 3}, {3, 0, 0}} {
		require.EqualValues(c, after.theirs, left(c.theirs, after.hits, "plan", "gold"), after)
		require.EqualValues(c, after.weir, left(c.weir, after.hits, "plan", "gold"), after)
	}
	// Only weir gets the two others.
	raw := &rlspb.Request{Domain: []byte("shop"), Descriptors: []*rlspb.Descriptor{{Entries: []*rlspb.Entry{{
		Key: []byte("user"), Value: []byte("\xff")}}}}}
	out := new(rlspb.Response)
	require.NoError(c, c.conns[1].Invoke(c.Context(), rlsv3.RateLimitService_ShouldRateLimit_FullMethodName, raw, out))
	require.NotNil(c, out.Statuses[0].CurrentLimit)
	in := &rlsv3.RateLimitRequest{Domain: "shop", Descriptors: []*descriptorv3.RateLimitDescriptor{{
		Limit: &descriptorv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1}}}}
	_, err := c.weir.ShouldRateLimit(c.Context(), in)
	require.Equal(c, codes.InvalidArgument, status.Code(err))
}

func hitsOf(in *rlsv3.RateLimitRequest, d *descriptorv3.RateLimitDescriptor) uint64 {
	if d.HitsAddend != nil {
		return d.HitsAddend.Value
	}
	return max(uint64(in.HitsAddend), 1)
}

// early waits until the current second of the clock is neither new nor nearly over, and returns it.
func (c *comparison) early() int64 {
	for {
		now := time.Now()
		switch into := time.Duration(now.Nanosecond()); {
		case into < 20*time.Millisecond:
			time.Sleep(20*time.Millisecond - into)
		case into > 850*time.Millisecond:
			time.Sleep(time.Second - into)
		default:
			return now.Unix()
		}
	}
}

// judge compares two answers with each other if the model says that both servers have counted the same, and each with
// the model otherwise.
func (c *comparison) judge(in *rlsv3.RateLimitRequest, now int64, theirs, weir *rlsv3.RateLimitResponse) {
	c.asked++
	require.Len(c, theirs.Statuses, len(in.Descriptors))
	require.Len(c, weir.Statuses, len(in.Descriptors))
	same, over := true, false
	for i, d := range in.Descriptors {
		a, b := theirs.Statuses[i], weir.Statuses[i]
		if !c.judgeStatus(in, d, now, a, b) {
			same = false
		}
		over = over || b.Code == rlsv3.RateLimitResponse_OVER_LIMIT
	}
	require.Equal(c, over, weir.OverallCode == rlsv3.RateLimitResponse_OVER_LIMIT, "%s\n%s", in, weir)
	if !same {
		return
	}
	n := len(weir.ResponseHeadersToAdd)
	if over {
		n--
		require.Equal(c, "Retry-After", weir.ResponseHeadersToAdd[n].Key)
	}
	weir.ResponseHeadersToAdd = weir.ResponseHeadersToAdd[:n]
	require.True(c, proto.Equal(theirs, weir), "%s\ntheirs: %s\nweir: %s", in, theirs, weir)
}

// judgeStatus returns whether the statuses are equal. It fails if the model does not predict them.
func (c *comparison) judgeStatus(in *rlsv3.RateLimitRequest, d *descriptorv3.RateLimitDescriptor, now int64,
	theirs, weir *rlsv3.RateLimitResponse_DescriptorStatus) (same bool) {
	limit := theirs.CurrentLimit
	if limit == nil {
		require.True(c, proto.Equal(theirs, weir), "%s\ntheirs: %s\nweir: %s", in, theirs, weir)
		return true
	}
	c.limited++
	key, theirKey := c.limiter(in.Domain, d, limit.Unit, now)
	hits := hitsOf(in, d)
	most := uint64(limit.RequestsPerUnit)
	c.counts[theirKey] += hits
	used := c.counts[key]
	denied := used+hits > most
	if !denied {
		used += hits
	}
	c.counts[key] = used
	deniedThere := c.counts[theirKey] > most
	if deniedThere {
		c.over++
	}
	// Whatever the mode of the limit, what is left says what was counted.
	require.EqualValues(c, most-min(c.counts[theirKey], most), theirs.LimitRemaining, "%s, %s", theirKey, in)
	require.EqualValues(c, most-min(used, most), weir.LimitRemaining, "%s, %s", key, in)
	if denied == deniedThere && theirs.LimitRemaining == weir.LimitRemaining {
		require.True(c, proto.Equal(theirs, weir), "%s\ntheirs: %s\nweir: %s", in, theirs, weir)
		return true
	}
	c.documented++
	if !denied {
		require.Equal(c, rlsv3.RateLimitResponse_OK, weir.Code, in)
	} else { // denied there too, in the same mode
		require.Equal(c, theirs.Code, weir.Code, in)
	}
	require.True(c, proto.Equal(limit, weir.CurrentLimit), in)
	if theirs.DurationUntilReset != nil && weir.DurationUntilReset != nil {
		require.True(c, proto.Equal(theirs.DurationUntilReset, weir.DurationUntilReset), in)
	}
	return false
}

// limiter names the counter of a descriptor in weir, and in envoyproxy/ratelimit as its key of Redis. That key does not
// have the unit, and descriptors with underscores can have one key.
func (c *comparison) limiter(domain string, d *descriptorv3.RateLimitDescriptor,
	unit rlsv3.RateLimitResponse_RateLimit_Unit, now int64) (key, theirKey string) {
	var patterns []string
	if d.Limit == nil {
		m, ok := c.config.Domain([]byte(domain)).Match(entriesOf(d))
		require.True(c, ok, "%s: weir finds no limit for %s", domain, d)
		patterns = m.Patterns
	}
	key, theirKey = fmt.Sprintf("weir %q %s", domain, unit), domain+"_"
	for i, e := range d.Entries {
		value := e.Value
		if patterns != nil && patterns[i] != "" {
			value = patterns[i]
		}
		key += fmt.Sprintf(" %q=%q", e.Key, value)
		theirKey += e.Key + "_" + value + "_"
	}
	start := now - now%secondsOf[unit]
	return fmt.Sprintf("%s %d", key, start), fmt.Sprintf("%s%d", theirKey, start)
}

var secondsOf = map[rlsv3.RateLimitResponse_RateLimit_Unit]int64{
	rlsv3.RateLimitResponse_RateLimit_SECOND: 1, rlsv3.RateLimitResponse_RateLimit_MINUTE: 60,
	rlsv3.RateLimitResponse_RateLimit_HOUR: 3600, rlsv3.RateLimitResponse_RateLimit_DAY: 86400,
	rlsv3.RateLimitResponse_RateLimit_WEEK: 7 * 86400, rlsv3.RateLimitResponse_RateLimit_MONTH: 30 * 86400,
	rlsv3.RateLimitResponse_RateLimit_YEAR: 365 * 86400,
}

var counterLine = regexp.MustCompile(
	`(?m)^ratelimit_service_rate_limit_((?:total_hits|over_limit|near_limit|within_limit|shadow_mode)\{.*\}) (\S+)$`)

// scrape returns the counters of a server.
func (c *comparison) scrape(i int) map[string]float64 {
	out, err := http.Get(c.metrics[i])
	require.NoError(c, err)
	defer out.Body.Close()
	text, err := io.ReadAll(out.Body)
	require.NoError(c, err)
	counters := map[string]float64{}
	for _, line := range counterLine.FindAllStringSubmatch(string(text), -1) {
		counters[line[1]], err = strconv.ParseFloat(line[2], 64)
		require.NoError(c, err)
	}
	return counters
}

// since returns how much each counter has grown, of those that must be equal.
func since(before, now map[string]float64, oneHit bool) map[string]float64 {
	grown := map[string]float64{}
	for name, value := range now {
		if value != before[name] && (oneHit || strings.HasPrefix(name, "total_hits")) {
			grown[name] = value - before[name]
		}
	}
	return grown
}
