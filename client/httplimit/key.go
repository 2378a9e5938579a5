package httplimit

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// Key says who sent a request, empty where it cannot tell. Different kinds of keys begin
// differently, so that no user can be taken for an address.
type Key func(*http.Request) string

const (
	// longestKey bounds what a client's word makes of a key; what is longer is hashed.
	longestKey = 128
	// hashBytes of SHA-256 are more than anybody can find two of.
	hashBytes = 16
	anonymous = "anonymous"
)

// FirstOf is the first of some keys that can tell.
func FirstOf(keys ...Key) Key {
	return func(r *http.Request) string {
		for _, key := range keys {
			if k := key(r); k != "" {
				return k
			}
		}
		return ""
	}
}

// ByUser is the user that f finds in a request, perhaps in its context.
func ByUser(f func(*http.Request) string) Key {
	return func(r *http.Request) string { return prefixed("user:", f(r)) }
}

// ByAPIKey is a hash of the secret in a header, such as X-Api-Key or Authorization: weir
// shows its keys to whoever may look at them.
func ByAPIKey(header string) Key {
	return func(r *http.Request) string {
		secret := r.Header.Get(header)
		if secret == "" {
			return ""
		}
		return "key:" + hashed(secret)
	}
}

// ByHeader is the value of a header that is no secret, such as a tenant that a gateway
// has set.
func ByHeader(header string) Key {
	return func(r *http.Request) string { return prefixed("header:", r.Header.Get(header)) }
}

// ByRoute makes all requests of a route share one limiter.
func ByRoute() Key { return func(*http.Request) string { return "route" } }

func prefixed(kind, word string) string {
	switch {
	case word == "":
		return ""
	case len(word) > longestKey || !printable(word):
		return kind + hashed(word)
	}
	return kind + word
}

func hashed(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "#" + hex.EncodeToString(sum[:hashBytes])
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
