package commands

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/service"
)

// TestACommandHasOneName checks that a command is found in any case, and under no other bytes.
func TestACommandHasOneName(t *testing.T) {
	srv := newTestServer(t, Config{})
	for name, cmd := range srv.table.byName {
		require.Same(t, cmd, srv.table.find([]byte(strings.ToLower(name))))
		for i := range name {
			other := []byte(name)
			for b := range 256 {
				if other[i] = byte(b); strings.EqualFold(string(other), name) {
					continue
				}
				require.NotSame(t, cmd, srv.table.find(other), "%q", other)
			}
		}
	}
}

// TestAStatusInTheWordsOfTheCommand checks that one status of the engine is described in the words of the command.
func TestAStatusInTheWordsOfTheCommand(t *testing.T) {
	codes := []engine.OpCode{engine.OpTake, engine.OpCheck, engine.OpReserve, engine.OpCommit}
	for status, own := range map[engine.Status]map[engine.OpCode]error{
		engine.TooManyHolders:  {engine.OpReserve: service.ErrTooManyHolds},
		engine.NotRefundable:   {engine.OpReserve: service.ErrStrikesHeld, engine.OpCheck: service.ErrStrikesElse},
		engine.OtherTerms:      {engine.OpCommit: service.ErrOtherActual},
		engine.WrongType:       {},
		engine.OutOfMemory:     {},
		engine.EverywhereStays: {},
		engine.PolicyChanged:   {},
		engine.Abandoned:       {},
	} {
		for _, code := range codes {
			var want error = service.StatusErrors[status]
			if own[code] != nil {
				want = own[code]
			}
			got := service.StatusError(&engine.Op{Code: code}, &engine.Decision{Status: status})
			if status == engine.OtherTerms && (code == engine.OpTake || code == engine.OpCheck) {
				require.ErrorContains(t, got, "IDUSED ")
				continue
			}
			require.Equal(t, want, got, "status %d of %d", status, code)
		}
	}
}

// TestInfoWeirIsWhole checks that INFO has the fields that monitoring reads.
func TestInfoWeirIsWhole(t *testing.T) {
	srv := newTestServer(t, Config{})
	srv.Events.Dropped.Add(7)
	text := srv.client(t).say("INFO weir")
	for _, field := range []string{
		"weir_version", "decisions_allowed", "decisions_denied", "keys_tokenbucket", "table_bytes",
		"evicted_forgiven_units",
		"limiter_time_ms", "clock_behind_ms", "protocol_errors", "handler_panics",
	} {
		require.Contains(t, text, "\r\n"+field+":")
	}
	require.Contains(t, text, "\r\ndenial_events_dropped:7\r\n")
}

// TestOnlyALoginThatWaitsIsCounted checks the count of waiting logins.
func TestOnlyALoginThatWaitsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newTestServer(t, Config{})
		waits := srv.Stats.AuthWaits.Load
		start := time.Now()
		require.NoError(t, srv.AwaitLogin(0, true))
		require.Zero(t, waits())
		require.NoError(t, srv.AwaitLogin(time.Second, true))
		require.EqualValues(t, 1, waits())
		require.Equal(t, time.Second, time.Since(start))
		require.Equal(t, service.ErrLoginsWait, srv.AwaitLogin(time.Minute, false))
		require.EqualValues(t, 2, waits())
		require.Equal(t, time.Second, time.Since(start), "a refused login must not wait")
	})
}

// TestWordsMatchInAnyCase checks that a word matches in any case, and no other bytes match.
func TestWordsMatchInAnyCase(t *testing.T) {
	const word = "AZ_[9"
	require.True(t, limits.Is([]byte("aZ_[9"), word))
	for i := range word {
		other := []byte(word)
		for b := range 256 {
			other[i] = byte(b)
			require.Equal(t, strings.EqualFold(string(other), word), limits.Is(other, word), "%q", other)
		}
	}
}

// TestAStatusIsMadeAnew checks that a status is computed twice a second, and shared until then.
func TestAStatusIsMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHTTP(newTestServer(t, Config{}).Shared)
		status := func() string { return visit(h, "/status.json", nil).Body.String() }
		first := status()
		time.Sleep(time.Second/2 - 1)
		require.Equal(t, first, status())
		time.Sleep(2 * time.Nanosecond)
		require.NotEqual(t, first, status())
	})
}
