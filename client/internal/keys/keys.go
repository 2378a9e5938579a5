// Package keys makes keys of limiters from what clients say and where they are. Keys of
// different kinds begin differently, so that no user can be taken for an address.
package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
)

const (
	// Anonymous is shared by all who give no key.
	Anonymous = "anonymous"
	// longest bounds what a client's word makes of a key; what is longer is hashed.
	longest = 128
	// hashBytes of SHA-256 are more than anybody can find two of.
	hashBytes = 16
	// clientBitsV6 is what of an IPv6 address is one client: a household or a machine has
	// a /64, and may use a new address of it for each request.
	clientBitsV6 = 64
	// longestAddr is room for any address, on the stack.
	longestAddr = 64
)

// Word is a key of a kind ("user:") made of a client's word, or empty.
func Word(kind, word string) string {
	switch {
	case word == "":
		return ""
	case len(word) > longest || !printable(word):
		return kind + hash(word)
	}
	return kind + word
}

// Secret is a key that does not tell the secret it is made of, or empty: weir shows its
// keys to whoever may look at them.
func Secret(kind, secret string) string {
	if secret == "" {
		return ""
	}
	return kind + hash(secret)
}

// Addr is the key of an address, of IPv6 its /64; empty for none.
func Addr(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	key := append(make([]byte, 0, longestAddr), "ip:"...)
	switch {
	case !addr.IsValid():
		return ""
	case addr.Is6():
		prefix, _ := addr.Prefix(clientBitsV6) // of a valid address it never fails
		return string(prefix.AppendTo(key))
	}
	return string(addr.AppendTo(key))
}

func hash(s string) string {
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
