package grpclimit

import (
	"context"
	"net/netip"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/weir-project/weir/client/internal/keys"
)

// Key returns the key of a call's client, or "" if it finds none. All calls without a key share one limiter.
type Key func(context.Context) string

// FirstOf returns the first key that is not empty.
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

// ByPeer returns the address of the connection as key, and the /64 for IPv6.
func ByPeer() Key {
	return func(ctx context.Context) string {
		p, ok := peer.FromContext(ctx)
		if !ok {
			return ""
		}
		addr, _ := netip.ParseAddrPort(p.Addr.String()) // a Unix socket has no address
		return keys.Addr(addr.Addr())
	}
}

// ByUser uses the user that f finds in the context of a call.
func ByUser(f func(context.Context) string) Key {
	return func(ctx context.Context) string { return keys.Word("user:", f(ctx)) }
}

// ByMetadata uses a value of the call's metadata that is not a secret.
func ByMetadata(name string) Key {
	return func(ctx context.Context) string { return keys.Word("metadata:", valueOf(ctx, name)) }
}

// BySecret uses a hash of a value of the call's metadata, such as authorization. It does not verify the value.
// Another interceptor must do so before this one.
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
