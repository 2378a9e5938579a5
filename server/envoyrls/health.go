package envoyrls

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/weir-project/weir/internal/rlspb"
)

// healthName is the service that probes of envoyproxy/ratelimit name.
const healthName = "ratelimit"

// ReadyWhen sets when the service is healthy, besides having its limits. Call it before Serve.
func (r *Server) ReadyWhen(ready func() bool) { r.ready = ready }

// Healthy reports whether calls can be decided.
func (r *Server) Healthy() bool { return !r.awaits.Load() && (r.ready == nil || r.ready()) }

// health implements grpc.health.v1. It has no Watch, and clients then take the service as healthy.
type health struct {
	healthpb.UnimplementedHealthServer
	of *Server
}

// Check answers a probe. Like a probe of HTTP it needs no password.
func (h health) Check(_ context.Context, in *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if in.Service != "" && in.Service != healthName {
		return nil, status.Error(codes.NotFound, "unknown service")
	}
	out := &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_NOT_SERVING}
	if h.of.Healthy() {
		out.Status = healthpb.HealthCheckResponse_SERVING
	}
	return out, nil
}

// ConfigText returns the limits in force, a line each, as /rlconfig of envoyproxy/ratelimit shows them.
func (r *Server) ConfigText() string {
	var b strings.Builder
	for _, l := range r.config.Load().Rules() {
		unit := l.Unit.String()
		if l.Unit == rlspb.Unit_NONE {
			unit = "UNKNOWN"
		}
		fmt.Fprintf(&b, "%s: unit=%s requests_per_unit=%d, shadow_mode: %t, quota_mode: %t\n", l.Path, unit,
			l.RequestsPerUnit, l.ShadowMode, l.QuotaMode)
	}
	return b.String()
}
