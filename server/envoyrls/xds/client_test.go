package xds

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weir-project/weir/internal/rlspb"
	"github.com/weir-project/weir/server/envoyrls/rules"
)

func resourceOf(t *testing.T, config *rlspb.DomainConfig) *anypb.Any {
	value, err := proto.Marshal(config)
	require.NoError(t, err)
	return &anypb.Any{TypeUrl: TypeURL, Value: value}
}

// TestRead checks that every field of a resource arrives, and that other resources are refused.
func TestRead(t *testing.T) {
	sources, err := read(&rlspb.DiscoveryResponse{Resources: []*anypb.Any{resourceOf(t, &rlspb.DomainConfig{
		Name: "n", Domain: "web", Descriptors: []*rlspb.DescriptorConfig{{Key: "a", Value: "b", ShadowMode: true,
			Descriptors: []*rlspb.DescriptorConfig{{Key: "c", DetailedMetric: true, RateLimit: &rlspb.LimitConfig{
				Unit: rlspb.Unit_WEEK, RequestsPerUnit: 7, Name: "l", Replaces: []*rlspb.Replaced{{Name: "x"}},
			}}, {Key: "d", RateLimit: &rlspb.LimitConfig{Unlimited: true}}},
		}}})}})
	require.NoError(t, err)
	require.Equal(t, []rules.Source{{Name: "n", Domain: "web", Descriptors: []rules.Descriptor{{
		Key: "a", Value: "b", ShadowMode: true, Descriptors: []rules.Descriptor{
			{Key: "c", DetailedMetric: true, Descriptors: []rules.Descriptor{}, Limit: &rules.Limit{
				Unit: rlspb.Unit_WEEK, RequestsPerUnit: 7, Name: "l", Replaces: []string{"x"}}},
			{Key: "d", Descriptors: []rules.Descriptor{}, Limit: &rules.Limit{Unlimited: true}},
		},
	}}}}, sources)
	for says, resource := range map[string]*anypb.Any{
		"a resource has the type other": {TypeUrl: "other"},
		"proto":                         {TypeUrl: TypeURL, Value: []byte{0xff}},
		"UTF-8":                         {TypeUrl: TypeURL, Value: []byte{0x12, 1, 0xff}},
	} {
		_, err := read(&rlspb.DiscoveryResponse{Resources: []*anypb.Any{resource}})
		require.ErrorContains(t, err, says)
	}
}

// TestRefusedLimitsThatAreSentAgain checks that limits which were refused are judged once, and that the answers to
// their repetitions wait longer and longer.
func TestRefusedLimitsThatAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		judged := 0
		c := &Client{Apply: func([]rules.Source, error) error {
			if judged++; judged == 3 {
				return nil
			}
			return errors.New(strings.Repeat("é", maxErrorBytes))
		}}
		bad := []*anypb.Any{resourceOf(t, &rlspb.DomainConfig{Domain: "bad"}),
			resourceOf(t, &rlspb.DomainConfig{Domain: "other"})}
		good := []*anypb.Any{resourceOf(t, &rlspb.DomainConfig{Domain: "good"})}
		request := &rlspb.DiscoveryRequest{VersionInfo: "before"}
		var waits []time.Duration
		answer := func(resources []*anypb.Any) {
			began := time.Now()
			c.answer(t.Context(), &rlspb.DiscoveryResponse{VersionInfo: "v", Nonce: "n", Resources: resources}, request)
			waits = append(waits, time.Since(began))
		}
		for range 7 {
			slices.Reverse(bad)
			answer(slices.Clone(bad))
			require.Equal(t, "before", request.VersionInfo)
			require.Equal(t, "n", request.ResponseNonce)
			require.True(t, proto.Size(request) < maxErrorBytes+100)
			_, err := proto.Marshal(request)
			require.NoError(t, err, "the cut text must be UTF-8")
		}
		require.Equal(t, 1, judged)
		answer(good) // other limits are judged at once, and refused too
		answer(bad)
		require.Nil(t, request.ErrorDetail)
		require.Equal(t, "v", request.VersionInfo)
		s := time.Second
		require.Equal(t, []time.Duration{0, s / 2, s, 2 * s, 4 * s, 8 * s, 10 * s, 0, 0}, waits)
	})
}

// TestConnectionsThatFail checks that the time between two attempts grows up to a bound, and that Run ends with its
// context.
func TestConnectionsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, attempts := time.Now(), 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		c := &Client{Log: slog.New(slog.DiscardHandler), Credentials: func() (credentials.TransportCredentials, error) {
			attempts++
			return nil, errors.New("no such file")
		}}
		c.Run(ctx)
		require.Equal(t, time.Hour, time.Since(began))
		require.Greater(t, attempts, int(time.Hour/mostWait))
		require.Less(t, attempts, 2*int(time.Hour/mostWait)+20)
	})
}

// TestAStreamBeginsWithoutAVersion checks the requests of two streams.
func TestAStreamBeginsWithoutAVersion(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	requests := make(chan *rlspb.DiscoveryRequest, 10)
	s := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		for range 2 {
			in := new(rlspb.DiscoveryRequest)
			if err := stream.RecvMsg(in); err != nil {
				return err
			}
			requests <- in
			if err := stream.SendMsg(&rlspb.DiscoveryResponse{VersionInfo: "7", Nonce: "n"}); err != nil {
				return err
			}
		}
		return nil // the stream ends
	}))
	go func() { _ = s.Serve(ln) }()
	defer s.Stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := &Client{Addr: ln.Addr().String(), Node: "node", Log: slog.New(slog.DiscardHandler),
		Credentials: func() (credentials.TransportCredentials, error) { return insecure.NewCredentials(), nil },
		Apply:       func([]rules.Source, error) error { return nil }}
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	for range 2 {
		first, second := <-requests, <-requests
		require.Equal(t, "node", first.Node.Id)
		require.Equal(t, TypeURL, first.TypeUrl)
		require.Empty(t, first.VersionInfo+first.ResponseNonce)
		require.Equal(t, "7 n", second.VersionInfo+" "+second.ResponseNonce)
	}
	cancel()
	<-ended
}
