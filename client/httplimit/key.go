package httplimit

import (
	"net/http"

	"github.com/weir-project/weir/client/internal/keys"
)

// Key returns the key of a request's client, or "" if it finds none. Keys of different kinds have different
// prefixes, so that a user name cannot pass for an address.
type Key func(*http.Request) string

// FirstOf returns the first key that is not empty.
func FirstOf(all ...Key) Key {
	return func(r *http.Request) string {
		for _, key := range all {
			if k := key(r); k != "" {
				return k
			}
		}
		return ""
	}
}

// ByUser uses the user that f finds in a request, for instance in its context.
func ByUser(f func(*http.Request) string) Key {
	return func(r *http.Request) string { return keys.Word("user:", f(r)) }
}

// ByAPIKey uses a hash of the secret in a header, such as X-Api-Key or Authorization. It does not verify the
// secret: see the package comment.
func ByAPIKey(header string) Key {
	return func(r *http.Request) string { return keys.Secret("key:", r.Header.Get(header)) }
}

// ByHeader uses the value of a header that is not a secret, such as a tenant set by a gateway.
func ByHeader(header string) Key {
	return func(r *http.Request) string { return keys.Word("header:", r.Header.Get(header)) }
}

// ByRoute makes all requests of a route share one limiter.
func ByRoute() Key { return func(*http.Request) string { return "route" } }

// ByIP uses the address of the connection's peer, and the /64 for IPv6. Behind a proxy, that is the proxy: use
// Proxies.ByIP there.
func ByIP() Key { return new(Proxies).ByIP() }

// ByIP uses the client's address that p determines, and the /64 for IPv6.
func (p *Proxies) ByIP() Key {
	return func(r *http.Request) string { return keys.Addr(p.Client(r)) }
}
