package httplimit

import (
	"net/http"

	"github.com/weir-project/weir/client/internal/keys"
)

// Key says who sent a request, empty where it cannot tell. Different kinds of keys begin
// differently, so that no user can be taken for an address.
type Key func(*http.Request) string

// FirstOf is the first of some keys that can tell.
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

// ByUser is the user that f finds in a request, perhaps in its context.
func ByUser(f func(*http.Request) string) Key {
	return func(r *http.Request) string { return keys.Word("user:", f(r)) }
}

// ByAPIKey is a hash of the secret in a header, such as X-Api-Key or Authorization. It does
// not know whether the secret is right: see the package's comment.
func ByAPIKey(header string) Key {
	return func(r *http.Request) string { return keys.Secret("key:", r.Header.Get(header)) }
}

// ByHeader is the value of a header that is no secret, such as a tenant that a gateway
// has set.
func ByHeader(header string) Key {
	return func(r *http.Request) string { return keys.Word("header:", r.Header.Get(header)) }
}

// ByRoute makes all requests of a route share one limiter.
func ByRoute() Key { return func(*http.Request) string { return "route" } }

// ByIP is the client's address as p knows it, of IPv6 its /64.
func (p *Proxies) ByIP() Key {
	return func(r *http.Request) string { return keys.Addr(p.Client(r)) }
}
