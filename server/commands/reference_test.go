package commands

import (
	"fmt"
	"strings"
)

// referenceChapters are the chapters of the reference, in order. The reference explains the shared arguments of a
// chapter once, in its introduction. The shared arguments of the first chapter are common to all.
var referenceChapters = [...]struct {
	group, title, intro string
	shared              []sharedParam
}{
	{groupDecide, "Decisions", decisionIntro, []sharedParam{
		{"", paramKey}, {"", paramRate}, {"", paramWindow}, {"", paramCost}, {"", paramPartial}, {"", paramFrom},
		{"", paramID},
	}},
	{groupPolicy, "Policies",
		"Limits that have a name, are kept by the server and change while it runs; see [policies](policies.md).", nil},
	{groupCorrect, "Corrections and blocks",
		"Complete a hold, give units back, forget usage, deny a key. All of them take effect at once.", nil},
	{groupLook, "Looking",
		"None of these changes a limiter. A key exists while its limiter is not idle, so scans skip idle keys. In a " +
			"cluster reads are linearizable at every node: " +
			"they show everything that any node acknowledged before they were sent. `READONLY` opts a connection " +
			"into stale reads of the node's own state, which tell their age.",
		[]sharedParam{{" of a set", paramSet}, {"", paramMember}}},
	{groupDialect, "Dialects",
		"Commands of other limiters, so that programs written for them need no change. All except INCREX share " +
			"keys with `RL.TOKENBUCKET`. INCREX has counters of its own.",
		[]sharedParam{{" of a string", paramString}, {"", paramValue}, {"", paramLifetime},
			{" of EXPIRE and its like", paramIfLifetime}, {"", paramIfLater}}},
	{groupMulti, "Transactions", "", nil},
	{groupPubSub, "Listening", "", nil},
	{groupConn, "Connection", "", nil},
	{groupServer, "Server", "", nil},
	{groupCluster, "Cluster", "", nil},
}

// sharedParam is an argument of several commands. of distinguishes it from other arguments of the same name.
type sharedParam struct {
	of string
	param
}

const decisionIntro = `Every decision answers the same five integers, unless its section says more:

| # | name | meaning |
|---|---|---|
| 0 | allowed | 1 or 0; with PARTIAL the units granted |
| 1 | remaining | whole units that could still be taken now |
| 2 | retry_after_ms | denied: after this long the same request fits, if nobody else takes the units; -1: no wait helps. Blocks, RETRYAFTER and all limits count. Allowed: how long to delay the request first, mostly 0 |
| 3 | reset_after_ms | until the limiter is idle, as if never used; -1: never by itself |
| 4 | limit | the burst, capacity or maximum in force |

The wait of a denial is exact to the millisecond, with four exceptions. RETRYAFTER is a lower bound. A hold counts as if it were committed, so it may give
units back earlier: a FOREVER limit that holds have filled answers -1. A strike waits for the end of its penalty, and the next strike may begin another.
A wait is under the definition in force: when an override ends or a policy changes before the wait does, the request may fit earlier, or have to wait again.

A denied request takes nothing. A key belongs to one algorithm until it is idle; another one on it answers ` + "`WRONGTYPE`" + `. Limits may change
from call to call: what was used stays used. Options stand in any order, in any case, each once.`

// referencePage returns docs/commands.md from the command table. Its table of contents is empty; internal/pages fills it.
func referencePage() string {
	var b strings.Builder
	b.WriteString("# Commands\n\nEvery command weir answers. Examples show the reply on an idle limiter, its " +
		"elements in one line. `*` stands for a number " +
		"that depends on the moment, and `#` begins a note. `weir help COMMAND` shows the same in a terminal. A command " +
		"with subcommands also has `HELP`.\n" +
		"\n<!-- contents -->\n<!-- /contents -->\n")
	table := newCommandTable(families()...)
	for _, chapter := range referenceChapters {
		b.WriteString("\n## " + chapter.title + "\n")
		if chapter.intro != "" {
			b.WriteString("\n" + chapter.intro + "\n")
		}
		if chapter.shared != nil {
			b.WriteString("\nArguments of several commands:\n\n")
		}
		known := []param{}
		for _, p := range chapter.shared {
			fmt.Fprintf(&b, "- `%s`%s: %s\n", p.name, p.of, p.meaning)
			known = append(known, p.param)
		}
		for _, p := range referenceChapters[0].shared {
			known = append(known, p.param)
		}
		for _, cmd := range table.all {
			if cmd.group == chapter.group {
				cmd.writeReference(&b, known)
			}
		}
	}
	return b.String()
}
