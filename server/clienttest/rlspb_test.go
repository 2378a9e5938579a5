package clienttest

import (
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weir-project/weir/internal/rlspb"
)

// TestMessagesAreEnvoys checks that weir's messages have the fields of Envoy's own, with the same numbers and types.
func TestMessagesAreEnvoys(t *testing.T) {
	envoys := &rlsv3.RateLimitRequest{Domain: "web", HitsAddend: 7, Descriptors: []*descriptorv3.RateLimitDescriptor{{
		Entries: []*descriptorv3.RateLimitDescriptor_Entry{{Key: "user", Value: "1"}},
		Limit: &descriptorv3.RateLimitDescriptor_RateLimitOverride{
			RequestsPerUnit: 8, Unit: typev3.RateLimitUnit_MONTH},
		HitsAddend: wrapperspb.UInt64(9),
	}}}
	ours := &rlspb.Request{Domain: []byte("web"), HitsAddend: 7, Descriptors: []*rlspb.Descriptor{{
		Entries:    []*rlspb.Entry{{Key: []byte("user"), Value: []byte("1")}},
		Limit:      &rlspb.Override{RequestsPerUnit: 8, Unit: rlspb.Unit_MONTH},
		HitsAddend: wrapperspb.UInt64(9),
	}}}
	sent, read := new(rlspb.Request), new(rlsv3.RateLimitRequest)
	convert(t, envoys, sent)
	require.True(t, proto.Equal(ours, sent), sent)
	convert(t, ours, read)
	require.True(t, proto.Equal(envoys, read), read)

	answered := &rlspb.Response{OverallCode: rlspb.Code_OVER_LIMIT, RawBody: []byte("no"),
		Statuses: []*rlspb.Status{{Code: rlspb.Code_OVER_LIMIT, LimitRemaining: 3,
			CurrentLimit:       &rlspb.Limit{RequestsPerUnit: 4, Unit: rlspb.Unit_MONTH, Name: "web:user"},
			DurationUntilReset: durationpb.New(5)}},
		ResponseHeadersToAdd: []*rlspb.Header{{Key: "Ratelimit", Value: "6"}}}
	got := new(rlsv3.RateLimitResponse)
	convert(t, answered, got)
	require.True(t, proto.Equal(&rlsv3.RateLimitResponse{
		OverallCode: rlsv3.RateLimitResponse_OVER_LIMIT, RawBody: []byte("no"),
		Statuses: []*rlsv3.RateLimitResponse_DescriptorStatus{{
			Code: rlsv3.RateLimitResponse_OVER_LIMIT, LimitRemaining: 3,
			CurrentLimit: &rlsv3.RateLimitResponse_RateLimit{RequestsPerUnit: 4,
				Unit: rlsv3.RateLimitResponse_RateLimit_MONTH, Name: "web:user"},
			DurationUntilReset: durationpb.New(5)}},
		ResponseHeadersToAdd: []*corev3.HeaderValue{{Key: "Ratelimit", Value: "6"}},
	}, got), got)
}

func convert(t *testing.T, from, to proto.Message) {
	encoded, err := proto.Marshal(from)
	require.NoError(t, err)
	require.NoError(t, proto.Unmarshal(encoded, to))
}
