package clienttest

import (
	"context"
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
	"testing"
	"time"

	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-project/weir/internal/freeport"
	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/envoyrls/rules"
)

// ratelimitModule is the version of envoyproxy/ratelimit that weir is compared with.
const ratelimitModule = "github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36"

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
	t.Logf("%d requests, %d descriptors with a limit, %d over it; %d differed because denied hits count there; "+
		"%d blocks repeated", c.asked, c.limited, c.over, c.documented, c.repeated)
	require.Greater(t, c.limited, c.asked/2, "too few descriptors had a limit")
	require.Greater(t, c.over, c.asked/20, "too few descriptors were over their limit")
	require.Positive(t, c.documented)
}

const (
	// blockRequests are the requests between two comparisons of all counters.
	blockRequests = 2500
	// maxRepeats bounds how often a block is repeated because a pair of answers was not of one second.
	maxRepeats = 10
)

// comparison is both servers, and a model of what they have counted.
type comparison struct {
	*testing.T
	rand         *rand.Rand
	theirs, weir rlsv3.RateLimitServiceClient
	metrics      [2]string // URLs
	config       *rules.Config
	generation   int // is part of all values, so that a repeated block finds no counts
	counts       map[string]counted

	asked, limited, over, documented, repeated int
}

// counted are the hits in one window of one limiter.
type counted struct{ theirs, weir uint64 }

func startComparison(t *testing.T, seed uint64) *comparison {
	c := &comparison{T: t, rand: rand.New(rand.NewPCG(seed, 0)), counts: map[string]counted{}}
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

	w := newWeir(t, freeport.Addr(t), func(line string) bool { return strings.Contains(line, "without a data directory") },
		"--data-dir", "", "--rls=127.0.0.1:0", "--envoy-config", dir, "--envoy-fields")
	w.HTTP = freeport.Addr(t)
	w.Start()
	theirs, metrics := startRatelimit(t, root)
	c.theirs, c.weir = dialService(t, theirs), dialService(t, w.rlsAddr())
	c.metrics = [2]string{"http://" + metrics + "/metrics", "http://" + w.HTTP + "/metrics"}
	return c
}

// startRatelimit builds and starts envoyproxy/ratelimit with Redis.
func startRatelimit(t *testing.T, root string) (grpcAddr, metrics string) {
	redis, bin := startRedis(t), t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "install", ratelimitModule)
	build.Dir, build.Env = bin, append(os.Environ(), "GOBIN="+bin, "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil && os.Getenv("CI") == "" {
		t.Skipf("SKIPPED: %s cannot be downloaded: %v\n%s", ratelimitModule, err, out)
	} else {
		require.NoError(t, err, "%s", out)
	}
	addrs := freeport.Addrs(t, 4)
	port := func(i int) string { return addrs[i][strings.LastIndexByte(addrs[i], ':')+1:] }
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "service_cmd"))
	cmd.Env = append(os.Environ(), "USE_STATSD=false", "USE_PROMETHEUS=true", "PROMETHEUS_ADDR="+addrs[3],
		"STATS_FLUSH_INTERVAL=100ms", "RUNTIME_ROOT="+root, "RUNTIME_SUBDIRECTORY=ratelimit", "REDIS_SOCKET_TYPE=unix",
		"REDIS_URL="+redis, "HOST=127.0.0.1", "PORT="+port(0), "GRPC_HOST=127.0.0.1", "GRPC_PORT="+port(1),
		"DEBUG_HOST=127.0.0.1", "DEBUG_PORT="+port(2), "LIMIT_RESPONSE_HEADERS_ENABLED=true")
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	require.Eventually(t, func() bool {
		out, err := http.Get("http://" + addrs[0] + "/healthcheck")
		if err == nil {
			_ = out.Body.Close()
		}
		return err == nil && out.StatusCode == http.StatusOK
	}, testWait, testWait/1000)
	return addrs[1], addrs[3]
}

func dialService(t *testing.T, addr string) rlsv3.RateLimitServiceClient {
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return rlsv3.NewRateLimitServiceClient(conn)
}

// block sends some requests, and compares the counters that they changed.
func (c *comparison) block(requests int, oneHit bool) {
	before := [2]map[string]float64{c.scrape(0), c.scrape(1)}
	for range maxRepeats {
		c.generation++
		if c.pairs(requests, oneHit) {
			break
		}
		c.repeated++
		require.Less(c, c.repeated, maxRepeats, "this machine is too busy to ask both within one second")
		time.Sleep(time.Second) // a flush of the other program's counters
		before = [2]map[string]float64{c.scrape(0), c.scrape(1)}
	}
	var theirs, weir map[string]float64
	equal := func() bool {
		theirs, weir = c.since(0, before[0], oneHit), c.since(1, before[1], oneHit)
		return fmt.Sprint(theirs) == fmt.Sprint(weir)
	}
	for end := time.Now().Add(testWait); !equal() && time.Now().Before(end); {
		time.Sleep(50 * time.Millisecond) // the other program publishes counters at intervals
	}
	require.NotEmpty(c, weir)
	require.Equal(c, theirs, weir, "the counters differ")
}

// pairs asks both servers. It returns false if the clock passed a second between two answers.
func (c *comparison) pairs(requests int, oneHit bool) bool {
	for range requests {
		in := c.request(oneHit)
		now := c.early()
		theirs, err := c.theirs.ShouldRateLimit(c.Context(), in)
		require.NoError(c, err)
		weir, err := c.weir.ShouldRateLimit(c.Context(), in)
		require.NoError(c, err)
		if time.Now().Unix() != now {
			return false
		}
		c.judge(in, now, theirs, weir)
	}
	return true
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
	key := c.limiter(in.Domain, d, limit.Unit, now)
	hits := max(uint64(in.HitsAddend), 1)
	if d.HitsAddend != nil {
		hits = d.HitsAddend.Value
	}
	before, most := c.counts[key], uint64(limit.RequestsPerUnit)
	after := before
	after.theirs += hits
	denied := before.weir+hits > most
	if !denied {
		after.weir += hits
	}
	c.counts[key] = after
	if after.theirs > most {
		c.over++
	}
	// Whatever the mode of the limit, what is left says what was counted.
	require.EqualValues(c, most-min(after.theirs, most), theirs.LimitRemaining, "model: %+v, %s", before, in)
	require.EqualValues(c, most-min(after.weir, most), weir.LimitRemaining, "model: %+v, %s", before, in)
	if denied == (after.theirs > most) && theirs.LimitRemaining == weir.LimitRemaining {
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
	return false
}

// limiter names the counter of a descriptor, of which envoyproxy/ratelimit makes a key of Redis.
func (c *comparison) limiter(domain string, d *descriptorv3.RateLimitDescriptor,
	unit rlsv3.RateLimitResponse_RateLimit_Unit, now int64) string {
	var entries []*rlspb.Entry
	for _, e := range d.Entries {
		entries = append(entries, &rlspb.Entry{Key: []byte(e.Key), Value: []byte(e.Value)})
	}
	var patterns []string
	if d.Limit == nil {
		m, ok := c.config.Domain([]byte(domain)).Match(entries)
		require.True(c, ok, "%s: weir finds no limit for %s", domain, d)
		patterns = m.Patterns
	}
	key := fmt.Sprintf("%q %s %d", domain, unit, now/secondsOf[unit])
	for i, e := range d.Entries {
		value := e.Value
		if patterns != nil && patterns[i] != "" {
			value = patterns[i]
		}
		key += fmt.Sprintf(" %q=%q", e.Key, value)
	}
	return key
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
func (c *comparison) since(i int, before map[string]float64, oneHit bool) map[string]float64 {
	counters := c.scrape(i)
	for name, value := range counters {
		if counters[name] = value - before[name]; value == before[name] || !oneHit && !strings.HasPrefix(name, "total_hits") {
			delete(counters, name)
		}
	}
	return counters
}

// request makes a random request.
func (c *comparison) request(oneHit bool) *rlsv3.RateLimitRequest {
	domains := []string{"shop", "api.example.com", "random1", "random2", "random3"}
	in := &rlsv3.RateLimitRequest{Domain: domains[c.rand.IntN(len(domains))]}
	if !oneHit && c.rand.IntN(4) == 0 {
		in.HitsAddend = c.rand.Uint32N(6)
	}
	for range 1 + c.rand.IntN(4)*c.rand.IntN(2) {
		d := &descriptorv3.RateLimitDescriptor{}
		if strings.HasPrefix(in.Domain, "random") {
			for range 1 + c.rand.IntN(3) {
				d.Entries = append(d.Entries, c.entry(c.pick(randomKeys), c.pick(randomValues)+c.pick("", "", "x", "1")))
			}
		} else {
			c.own(d)
		}
		if c.rand.IntN(12) == 0 {
			c.override(d, oneHit)
		}
		if !oneHit && c.rand.IntN(4) == 0 {
			d.HitsAddend = wrapperspb.UInt64(c.rand.Uint64N(6))
		}
		in.Descriptors = append(in.Descriptors, d)
	}
	return in
}

// override gives a descriptor a limit of its own. Of requests with one hit it must not meet a limiter of the
// configuration, which has another limit.
func (c *comparison) override(d *descriptorv3.RateLimitDescriptor, oneHit bool) {
	unit := typev3.RateLimitUnit(1 + c.rand.IntN(7))
	d.Limit = &descriptorv3.RateLimitDescriptor_RateLimitOverride{Unit: unit, RequestsPerUnit: uint32(c.rand.IntN(5))}
	if oneHit {
		d.Limit.RequestsPerUnit = 4
		d.Entries = append(d.Entries, c.entry("override", "of."+c.pick("a", "b")))
	}
}

func (c *comparison) pick(of ...string) string { return of[c.rand.IntN(len(of))] }

// entry ends the value with the generation, apart from values that only match as they are.
func (c *comparison) entry(key, value string) *descriptorv3.RateLimitDescriptor_Entry {
	return &descriptorv3.RateLimitDescriptor_Entry{Key: key, Value: value}
}
