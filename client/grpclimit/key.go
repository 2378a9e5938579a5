package grpclimit

import (
	"context"
	"net/netip"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weir-project/weir/client/internal/keys"
)

// Key says who makes a call, empty where it cannot tell; callers it cannot tell apart
// share one limiter.
type Key func(context.Context) string

// FirstOf is the first of some keys that can tell.
func FirstOf(all ...Key) Key {
	return func(ctx context.Context) string {
		for _, key := range all {
			if k := key(ctx); k != "" {
				return k
			}
		}
		return ""
	}
}

// ByPeer is the address of the connection, of IPv6 its /64.
func ByPeer() Key {
	return func(ctx context.Context) string {
		p, ok := peer.FromContext(ctx)
		if !ok {
			return ""
		}
		addr, _ := netip.ParseAddrPort(p.Addr.String()) // of a Unix socket there is none
		return keys.Addr(addr.Addr())
	}
}

// ByUser is the user that f finds in the context of a call.
func ByUser(f func(context.Context) string) Key {
	return func(ctx context.Context) string { return keys.Word("user:", f(ctx)) }
}

// ByMetadata is a value of the call's metadata that is no secret.
func ByMetadata(name string) Key {
	return func(ctx context.Context) string { return keys.Word("metadata:", valueOf(ctx, name)) }
}

// BySecret is a hash of a value of the call's metadata, such as authorization. It does not
// know whether the value is right: another interceptor has to, before this one.
func BySecret(name string) Key {
	return func(ctx context.Context) string { return keys.Secret("key:", valueOf(ctx, name)) }
}

// ByMethod makes all calls of a Method share one limiter.
func ByMethod() Key { return func(context.Context) string { return "method" } }

func valueOf(ctx context.Context, name string) string {
	if values := metadata.ValueFromIncomingContext(ctx, name); len(values) > 0 {
		return values[0]
	}
	return ""
}
