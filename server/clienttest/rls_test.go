package clienttest

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/internal/weirproc"
)

const (
	envoys, callsOfEach       = 64, 40
	limitOfAll, limitOfMember = 1500, 25
)

// rlsAddr returns the address of a server's rate limit service for Envoy, from its log.
func (w *weir) rlsAddr() string {
	for line := range strings.Lines(w.Log()) {
		var ready struct{ Msg, RLS string }
		if json.Unmarshal([]byte(line), &ready) == nil && weirproc.Accepts(ready.Msg) {
			return ready.RLS
		}
	}
	w.t.Fatal("the server is not ready")
	return ""
}

// TestEnvoys calls the rate limit service with Envoy's own generated client, over 64 connections at once. Each
// descriptor is counted separately and exactly.
func TestEnvoys(t *testing.T) {
	w := startWeir(t, "--rls=127.0.0.1:0")
	require.Zero(t, hammerRLS(t, w, w), "one node knows what it counted")
}

// TestEnvoysOfACluster does the same through the nodes that do not lead.
func TestEnvoysOfACluster(t *testing.T) {
	c := startCluster(t, nil, "--rls=127.0.0.1:0")
	leader := c.leader()
	first := c.other(leader)
	unknown := hammerRLS(t, c.nodes[leader], c.nodes[first], c.nodes[c.other(leader, first)])
	require.Less(t, unknown, int64(envoys*callsOfEach/2), "a cluster that stands still does so for moments")
}

// hammerRLS creates the policies at one node and calls other nodes. It returns the number of calls with an unknown
// outcome, which may have been counted.
func hammerRLS(t *testing.T, policies *weir, called ...*weir) int64 {
	for name, limit := range map[string]int{"web:all": limitOfAll, "web:member": limitOfMember} {
		until(t, "the policies are not created", func() bool {
			_, err := policies.ask("RL.POLICY", "SET", name, "LIMIT", "FIXED", "366d", strconv.Itoa(limit), "FIRST")
			return err == nil
		})
	}
	for _, w := range called {
		until(t, "a node does not know the policies", func() bool {
			_, err := w.ask("RL.POLICY", "GET", "web:member")
			return err == nil
		})
	}
	var ofAll, ofMembers, calls, allowed, unknown atomic.Int64
	var all sync.WaitGroup
	for i := range envoys {
		conn, err := grpc.NewClient(called[i%len(called)].rlsAddr(),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		all.Go(func() {
			envoy := rlsv3.NewRateLimitServiceClient(conn)
			for range callsOfEach {
				out, err := askForAnAnswer(t, envoy, memberCall(i))
				if status.Code(err) == codes.Unknown {
					unknown.Add(1)
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				calls.Add(1)
				wholeOK, memberOK := out.Statuses[0].Code == rlsv3.RateLimitResponse_OK,
					out.Statuses[1].Code == rlsv3.RateLimitResponse_OK
				ofAll.Add(oneIf(wholeOK))
				ofMembers.Add(oneIf(memberOK))
				allowed.Add(oneIf(out.OverallCode == rlsv3.RateLimitResponse_OK))
				if (wholeOK && memberOK) != (out.OverallCode == rlsv3.RateLimitResponse_OK) {
					t.Errorf("overall %v of %v", out.OverallCode, out.Statuses)
				}
			}
		})
	}
	all.Wait()
	// If the cluster stands still, calls with an unknown outcome may have been counted. Usually there are none.
	require.EqualValues(t, envoys*callsOfEach, calls.Load()+unknown.Load())
	exact := func(want int, got int64, msg string) {
		require.LessOrEqual(t, got, int64(want), msg)
		require.GreaterOrEqual(t, got+unknown.Load(), int64(want), msg)
	}
	exact(limitOfAll, ofAll.Load(), "of all together")
	exact(envoys*limitOfMember, ofMembers.Load(), "of each")
	require.LessOrEqual(t, allowed.Load(), ofAll.Load())
	return unknown.Load()
}

// askForAnAnswer repeats a call while it is answered with UNAVAILABLE, which means that nothing was counted.
func askForAnAnswer(t *testing.T, envoy rlsv3.RateLimitServiceClient,
	r *rlsv3.RateLimitRequest) (*rlsv3.RateLimitResponse, error) {
	for end := time.Now().Add(clusterWait); ; {
		out, err := envoy.ShouldRateLimit(t.Context(), r, grpc.WaitForReady(true))
		if status.Code(err) != codes.Unavailable || time.Now().After(end) {
			return out, err
		}
		time.Sleep(pollEvery)
	}
}

// memberCall returns a call with two descriptors: the limit of all members together, and the limit of member i.
func memberCall(i int) *rlsv3.RateLimitRequest {
	entry := func(key, value string) []*descriptorv3.RateLimitDescriptor_Entry {
		return []*descriptorv3.RateLimitDescriptor_Entry{{Key: key, Value: value}}
	}
	return &rlsv3.RateLimitRequest{Domain: "web", Descriptors: []*descriptorv3.RateLimitDescriptor{
		{Entries: entry("generic_key", "all")}, {Entries: entry("member", strconv.Itoa(i))},
	}}
}

func oneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
