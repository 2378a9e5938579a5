package service

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func refusalOf(client, command string) *UnsupportedUse {
	return &UnsupportedUse{Unsupported: Unsupported{Kind: LacksCommand, Command: command}, Client: client,
		Library: "lib 1", Addr: "192.0.2.1:40000"}
}

// TestUnsupportedIsBounded checks the bounds of the table and of the log against a client with endless names.
func TestUnsupportedIsBounded(t *testing.T) {
	table, now, lines := newUnsupportedUses(), time.Unix(1000, 0), 0
	add := func(client, command string) {
		now = now.Add(time.Millisecond)
		if line := table.add(refusalOf(client, command), now); line > 0 && line <= maxUnsupportedLogs {
			lines++
		}
	}
	for i := range 10 * maxUnsupported {
		add(fmt.Sprint("client-", i), "lpush")
		add("steady", "lpush") // is refused all the time, so it is never the oldest
	}
	require.Equal(t, maxUnsupportedLogs, lines)
	list := table.List()
	require.Len(t, list, maxUnsupported)
	require.Equal(t, "steady", list[0].By(), "the last refused comes first")
	require.EqualValues(t, 10*maxUnsupported, list[0].Count)
	require.Equal(t, map[[2]string]int64{{LacksCommand, "lpush"}: 20 * maxUnsupported}, table.Counts())

	now = now.Add(time.Hour)
	add("late", "lpush")
	require.Equal(t, maxUnsupportedLogs+1, lines, "another hour has lines of its own")
}

func TestUnsupportedPairs(t *testing.T) {
	table, now := newUnsupportedUses(), time.Unix(1000, 0)
	require.Equal(t, 1, table.add(refusalOf("", "lpush"), now))
	require.Equal(t, 0, table.add(refusalOf("", "lpush"), now), "a pair is new once")
	require.Equal(t, 2, table.add(refusalOf("named", "lpush"), now), "a name counts before the library")
	require.Equal(t, 3, table.add(refusalOf("", "rpush"), now))
	host := refusalOf("", "lpush")
	host.Library, host.Addr = "", "192.0.2.1:40001"
	require.Equal(t, 4, table.add(host, now))
	host.Addr = "192.0.2.1:40002"
	require.Equal(t, 0, table.add(host, now), "the port is no part of a client")
}

// TestUnknownSumIsNoProblemAtOnce checks that an EVALSHA which the client follows by a recognised EVAL leaves no trace.
func TestUnknownSumIsNoProblemAtOnce(t *testing.T) {
	script := func(command string, retried bool) *UnsupportedUse {
		what := Unsupported{Kind: LacksScript, Command: command, SHA1: "ab", Retried: retried}
		return &UnsupportedUse{Unsupported: what, Addr: "192.0.2.1:1"}
	}
	table, now := newUnsupportedUses(), time.Unix(1000, 0)
	for range 3 {
		require.Zero(t, table.add(script("evalsha", true), now))
	}
	require.Empty(t, table.List())
	require.Empty(t, table.Counts())
	require.Equal(t, 1, table.add(script("evalsha", true), now.Add(scriptGrace)), "it was never followed by a text")

	table = newUnsupportedUses()
	require.Zero(t, table.add(script("evalsha", true), now))
	require.Equal(t, 1, table.add(script("eval", false), now), "the text is not recognised either")
	require.Zero(t, table.add(script("evalsha", true), now), "one script is one pair")
	require.Len(t, table.List(), 1)
	require.EqualValues(t, 2, table.List()[0].Count)
	require.Equal(t, "eval", table.List()[0].Command, "the refusal of the text says more")
}
