package events

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func write(l *Log, n int, key string) {
	for range n {
		l.Append([]Event{{
			AtMs: 5, Kind: Settled, Policy: "p", Key: key, ID: "h", Amount: 7, Used: 1 << 53, Limit: 1 << 53,
		}})
	}
}

// drainTo loads what a log drains, in small pieces, into a copy of a store.
func drainTo(l *Log, store map[string]string) {
	for more := true; more; {
		more = l.Drain(7, func(key string, value func([]byte) []byte) {
			if b := value(nil); len(b) > 0 {
				store[key] = string(b)
			} else {
				delete(store, key)
			}
		})
	}
}

func load(t *testing.T, store map[string]string, bound int64) *Log {
	l := New(bound)
	for key, value := range store {
		require.NoError(t, l.Load(key, []byte(value)))
	}
	return l
}

func all(l *Log) (list []Event, at Position) {
	list, at, _ = l.Read(0, 1<<20)
	return list, at
}

// TestAFullLogDropsTheOldest checks that a log keeps its bound, and that a reader sees what is gone.
func TestAFullLogDropsTheOldest(t *testing.T) {
	l := New(MinBytes)
	write(l, 2000, strings.Repeat("k", 100))
	list, at := all(l)
	require.LessOrEqual(t, at.Bytes, int64(MinBytes))
	require.Equal(t, uint64(2000), at.Last)
	require.Equal(t, uint64(2000-len(list)), at.Dropped())
	require.Equal(t, at.First, list[0].Cursor)
	require.Equal(t, uint64(2000), list[len(list)-1].Cursor)
}

// TestTimeDoesNotGoBack checks that the times of events ascend, so that identifiers of a time and a cursor ascend.
func TestTimeDoesNotGoBack(t *testing.T) {
	l := New(0)
	l.Append([]Event{{AtMs: 5, Kind: Settled}, {AtMs: 3, Kind: Settled}, {AtMs: 9, Kind: Settled}})
	list, _ := all(l)
	require.Equal(t, []int64{5, 5, 9}, []int64{list[0].AtMs, list[1].AtMs, list[2].AtMs})
	require.Equal(t, []uint64{0, 0, 2, 3}, []uint64{l.Before(4), l.Before(5), l.Before(9), l.Before(10)})
}

// TestAStoredLogIsTheSame checks that a log that is stored in pieces, renewed and loaded in any order is the same, and
// that the store has no event that the log has dropped.
func TestAStoredLogIsTheSame(t *testing.T) {
	l, store := New(MinBytes), map[string]string{}
	for i := range 60 {
		write(l, 50, strings.Repeat("k", 1+i%3*40))
		if i%3 == 0 {
			drainTo(l, store)
		}
		if i%7 == 0 {
			l.Renew(false)
		}
		if i == 31 {
			clear(store)
			l.Renew(true)
		}
	}
	drainTo(l, store)
	list, at := all(l)
	require.Equal(t, len(list)+1, len(store))
	other := load(t, store, MinBytes)
	same, sameAt := all(other)
	require.Equal(t, list, same)
	require.Equal(t, at, sameAt)
	write(l, 1, "next")
	write(other, 1, "next")
	list, _ = all(l)
	same, _ = all(other)
	require.Equal(t, list, same)
	drainTo(other, store)
	require.Equal(t, len(list)+1, len(store), "the store of a loaded log")
}

// TestALowerBoundDropsAtTheLoad checks that a log that is loaded under a lower bound keeps it.
func TestALowerBoundDropsAtTheLoad(t *testing.T) {
	l, store := New(10*MinBytes), map[string]string{}
	write(l, 3000, strings.Repeat("k", 100))
	drainTo(l, store)
	small := load(t, store, MinBytes)
	list, at := all(small)
	require.LessOrEqual(t, at.Bytes, int64(MinBytes))
	require.Equal(t, uint64(3000), list[len(list)-1].Cursor)
	drainTo(small, store)
	require.Equal(t, len(list)+1, len(store))
}

// TestDamagedEventsAreRefused checks that bytes that Drain did not hand out are an error.
func TestDamagedEventsAreRefused(t *testing.T) {
	for key, value := range map[string]string{
		"": "x", "short": "x", "12345678": "", "87654321": "\x09\x00\x00\x00\x00\x00\x00\x00\x00", positionKey: "\x00",
	} {
		require.ErrorIs(t, New(0).Load(key, []byte(value)), ErrStored, key)
	}
}

// TestAReaderIsWoken checks that a reader that has seen all events is woken by the next one.
func TestAReaderIsWoken(t *testing.T) {
	l := New(0)
	_, _, wake := l.Read(0, 1)
	select {
	case <-wake:
		t.Fatal("no event was written")
	default:
	}
	write(l, 1, "k")
	<-wake
}
