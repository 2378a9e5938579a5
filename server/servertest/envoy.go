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
