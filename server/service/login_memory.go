package service

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"sync"
)

// LoginMemory holds the last valid credentials of a connection for HTTP or gRPC. The next request with the same
// credentials is then no new login, and guesses of other clients do not delay it, as on a RESP port. The memory does
// not belong to the address: guesses may come from the same address, and only the right guess would be answered without
// a delay.
type LoginMemory struct {
	key [sha256.Size]byte // random for each connection

	mu    sync.Mutex
	right []byte // keyed hash of the last valid credentials; nil: none
}

type loginMemoryKey struct{}

// NewLoginMemory returns the empty memory of a new connection.
func NewLoginMemory() *LoginMemory {
	l := new(LoginMemory)
	_, _ = rand.Read(l.key[:]) // never fails
	return l
}

// WithLoginMemory adds an empty memory to the context of a new connection.
func WithLoginMemory(ctx context.Context) context.Context {
	return context.WithValue(ctx, loginMemoryKey{}, NewLoginMemory())
}

// LoginMemoryOf returns the memory of the connection to which the context of a request belongs. Without a memory each
// request logs in again.
func LoginMemoryOf(ctx context.Context) *LoginMemory {
	if l, ok := ctx.Value(loginMemoryKey{}).(*LoginMemory); ok {
		return l
	}
	return new(LoginMemory)
}

func (l *LoginMemory) hash(credentials string) []byte {
	mac := hmac.New(sha256.New, l.key[:])
	_, _ = mac.Write([]byte(credentials))
	return mac.Sum(nil)
}

// recalls reports whether these credentials were the last valid ones. Other credentials erase the memory. A client that
// guesses through the shared connection of a proxy thus tests at most one guess without a delay.
func (l *LoginMemory) recalls(credentials string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := hmac.Equal(l.right, l.hash(credentials))
	if !known {
		l.right = nil
	}
	return known
}

// remember stores valid credentials.
func (l *LoginMemory) remember(credentials string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.right = l.hash(credentials)
}
