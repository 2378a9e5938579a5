// Package keys makes keys of limiters from the text and the address of a client. Keys of different kinds have
// different prefixes, so that a user name cannot pass for an address.
package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"

	"github.com/weir-project/weir/internal/clientaddr"
)

const (
	// Anonymous is the key of all clients that give no key.
	Anonymous = "anonymous"
	// longest bounds the text of a client in a key. Longer and unprintable texts are hashed.
	longest = 128
	// hashBytes is how many bytes of SHA-256 a key has: enough that nobody can find a collision.
	hashBytes = 16
	// longestAddr is the capacity of a buffer for the key of any address. Its size is constant, so that the buffer
	// stays on the stack.
	longestAddr = 64
)

// Word returns a key of a kind ("user:") with a client's text, or "" if the text is empty.
func Word(kind, word string) string {
	switch {
	case word == "":
		return ""
	case len(word) > longest || !printable(word):
		return kind + hash(word)
	}
	return kind + word
}

// Secret returns a key that does not reveal the secret it is made of, or "". weir shows its keys to operators.
func Secret(kind, secret string) string {
	if secret == "" {
		return ""
	}
	return kind + hash(secret)
}

// Addr returns the key of an address, with the /64 for IPv6, or "" for an invalid address.
func Addr(addr netip.Addr) string {
	if !addr.IsValid() {
		return ""
	}
	return string(clientaddr.Append(append(make([]byte, 0, longestAddr), "ip:"...), addr))
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
