package servertest

import (
	"context"

	"google.golang.org/grpc"

	"github.com/weir-project/weir/internal/rlspb"
)

// Envoy calls the rate limit service of a server.
type Envoy struct{ Conn grpc.ClientConnInterface }

// ShouldRateLimit calls the service's one method.
func (e Envoy) ShouldRateLimit(
	ctx context.Context, in *rlspb.Request, opts ...grpc.CallOption,
) (*rlspb.Response, error) {
	out := new(rlspb.Response)
	err := e.Conn.Invoke(ctx, "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", in, out, opts...)
	return out, err
}

// CheckRateLimit and Report call the methods of Kuadrant's service.
func (e Envoy) CheckRateLimit(ctx context.Context, in *rlspb.Request) (*rlspb.Response, error) {
	out := new(rlspb.Response)
	return out, e.Conn.Invoke(ctx, "/kuadrant.service.ratelimit.v1.RateLimitService/CheckRateLimit", in, out)
}

// Report is documented at CheckRateLimit.
func (e Envoy) Report(ctx context.Context, in *rlspb.Request) (*rlspb.Response, error) {
	out := new(rlspb.Response)
	return out, e.Conn.Invoke(ctx, "/kuadrant.service.ratelimit.v1.RateLimitService/Report", in, out)
}
