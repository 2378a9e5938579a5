// Package logtest keeps what a program or a logger writes, so that a test can read it meanwhile.
package logtest

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// Buffer keeps what is written to it. The zero value is empty. Its methods may be called concurrently.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// Reset forgets all that was written.
func (b *Buffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text.Reset()
}

// String returns all that was written.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// Has reports whether a text was written.
func (b *Buffer) Has(text string) bool { return strings.Contains(b.String(), text) }

// Count returns how often a text was written.
func (b *Buffer) Count(text string) int { return strings.Count(b.String(), text) }

// Logger returns a logger that writes to the buffer.
func (b *Buffer) Logger() *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
