package acl

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var guesser = netip.MustParseAddr("192.0.2.7")

// TestGuessesAreHeldBack checks that one address can guess once in five seconds, with any number of connections. The
// first FreeFailures guesses are free. Other clients do not wait.
func TestGuessesAreHeldBack(t *testing.T) {
	f := NewFailedLogins()
	start := time.Unix(1_800_000_000, 0)
	guesses, now := 0, start
	for now.Before(start.Add(time.Hour)) {
		for range 100 { // connections that guess at the same time
			wait, ok := f.Delay(guesser, now)
			if !ok || wait > 0 {
				continue // it waits longer than this pass of the loop
			}
			guesses++
			f.Note(guesser, now)
		}
		wait, ok := f.Delay(netip.MustParseAddr("192.0.2.8"), now)
		require.True(t, ok)
		require.Zero(t, wait)
		now = now.Add(100 * time.Millisecond)
	}
	require.Less(t, guesses, FreeFailures+3600/5+10)
	require.Greater(t, guesses, FreeFailures)
}

func TestFailuresAreForgotten(t *testing.T) {
	f, now := NewFailedLogins(), time.Unix(1_800_000_000, 0)
	for range 2 * FreeFailures {
		f.Note(guesser, now)
	}
	_, _ = f.Delay(guesser, now)
	wait, ok := f.Delay(guesser, now)
	require.True(t, ok)
	require.Equal(t, LoginPauseMax, wait)
	_, ok = f.Delay(guesser, now)
	require.False(t, ok, "it would have to wait for longer than the longest pause")
	now = now.Add(forgetFailures + time.Second)
	for range 3 {
		wait, ok = f.Delay(guesser, now)
		require.True(t, ok)
		require.Zero(t, wait, "a pool that connects hours later is not delayed")
	}
	f.Note(guesser, now)
	wait, ok = f.Delay(guesser, now)
	require.True(t, ok)
	require.Zero(t, wait)
}

func TestFailedSourcesAreBounded(t *testing.T) {
	f, now := NewFailedLogins(), time.Unix(1_800_000_000, 0)
	for i := range 3 * maxFailedSources {
		f.Note(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), now.Add(time.Duration(i)))
	}
	require.Len(t, f.By, maxFailedSources)
}
