package service

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"sync"
)

// loginMemory remembers what an HTTP connection logged in with last, so that its next
// request is no new login and waits for nobody else's guesses: the client of a RESP port
// logs in once too. It remembers for the connection, not for the address: from there
// guesses come as well, and one that was right would be known by not having to wait.
type loginMemory struct {
	key [sha256.Size]byte // of the connection alone

	mu    sync.Mutex
	right []byte // what was right last, by its keyed hash; nil: nothing
}

type loginMemoryKey struct{}

// WithLoginMemory gives a new connection its memory.
func WithLoginMemory(ctx context.Context) context.Context {
	l := new(loginMemory)
	_, _ = rand.Read(l.key[:]) // never fails
	return context.WithValue(ctx, loginMemoryKey{}, l)
}

// LoginMemoryOf is the memory of the connection that a request with this context came by.
// One that has none logs in anew each time.
func LoginMemoryOf(ctx context.Context) *loginMemory {
	if l, ok := ctx.Value(loginMemoryKey{}).(*loginMemory); ok {
		return l
	}
	return new(loginMemory)
}

func (l *loginMemory) hash(credentials string) []byte {
	mac := hmac.New(sha256.New, l.key[:])
	_, _ = mac.Write([]byte(credentials))
	return mac.Sum(nil)
}

// recalls says whether these credentials were right last. Others end the memory: who
// guesses behind a proxy, by the connection of someone else, is told of one guess at most.
func (l *loginMemory) recalls(credentials string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := hmac.Equal(l.right, l.hash(credentials))
	if !known {
		l.right = nil
	}
	return known
}

// remember notes that these credentials are right.
func (l *loginMemory) remember(credentials string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.right = l.hash(credentials)
}
