package clienttest

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	// pipelined is the length of a pipeline: enough commands that a failover happens while some are in flight.
	pipelined = 16
	// backOff is how long a caller waits before it resends a refused command.
	backOff = 20 * time.Millisecond
)

// load sends commands through one client, from several goroutines (callers).
type load struct {
	client  clusterClient
	callers int
	once    *tally // of commands with an ID, which are resent until they are acknowledged
	plain   *tally // of commands without an ID, which are sent once
	worries *worries
	tokens  atomic.Int64
}

func newLoad(client clusterClient, callers int) *load {
	return &load{
		client: client, callers: callers, once: newTally("once"), plain: newTally("plain"),
		worries: &worries{seen: map[string]int{}},
	}
}

// during runs what while the callers send commands. Some decisions are acknowledged before what begins, and some after
// it has ended.
func (l *load) during(t *testing.T, name string, what func()) {
	t.Helper()
	began := l.acknowledged()
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range l.callers {
		callers.Go(func() { l.call(stop) })
	}
	ended := sync.OnceFunc(func() { close(stop); callers.Wait() })
	defer ended()
	l.goesOn(t)
	what()
	l.goesOn(t)
	ended()
	assert.Empty(t, l.unexpected())
	t.Logf("%s: %d acknowledged, errors %v", name, l.acknowledged()-began, l.worries.take())
}

// goesOn waits until some more decisions are acknowledged.
func (l *load) goesOn(t *testing.T) {
	t.Helper()
	const some = 5 * pipelined
	enough := l.acknowledged() + some
	until(t, "the client does not go on", func() bool {
		return l.acknowledged() >= enough || len(l.unexpected()) > 0
	})
	require.Empty(t, l.unexpected())
}

// unexpected returns the errors and answers that must not occur.
func (l *load) unexpected() []string {
	return slices.Concat(l.worries.unexpected(), l.once.unexpected(), l.plain.unexpected())
}

func (l *load) acknowledged() int { return l.once.acknowledged() + l.plain.acknowledged() }

// call alternates single commands and pipelines, with and without an ID.
func (l *load) call(stop <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		default:
		}
		if n%2 == 0 {
			l.sendPlain(1)
			l.sendOnce(1)
		} else {
			l.sendPlain(pipelined)
			l.sendOnce(pipelined)
		}
	}
}

// take returns a command that takes one unit, with further arguments.
func take(key string, more ...string) []string {
	return append([]string{"RL.FIXED", key, "FOREVER", strconv.FormatInt(most, 10)}, more...)
}

func (l *load) sendPlain(n int) {
	commands := make([][]string, n)
	for i := range commands {
		commands[i] = take(l.plain.key)
	}
	refused := false
	for _, a := range l.client.send(commands) {
		l.plain.note(a)
		l.worries.note(a.err)
		refused = refused || a.err != nil
	}
	if refused {
		time.Sleep(backOff)
	}
}

// sendOnce sends n commands with IDs. It resends each until it is acknowledged, or until an unexpected error occurs.
func (l *load) sendOnce(n int) {
	commands := make([][]string, n)
	for i := range commands {
		commands[i] = take(l.once.key, "ID", fmt.Sprintf("token-%d", l.tokens.Add(1)))
	}
	for len(commands) > 0 && len(l.unexpected()) == 0 {
		var again [][]string
		for i, a := range l.client.send(commands) {
			if a.err == nil {
				l.once.note(a)
				continue
			}
			l.worries.note(a.err)
			again = append(again, commands[i])
		}
		if commands = again; len(commands) > 0 {
			time.Sleep(backOff)
		}
	}
}

// takeRest takes all units that are left, and checks that further requests are denied.
func (l *load) takeRest(t *testing.T, left int64) {
	t.Helper()
	const last = 3
	for i, cost := range []string{strconv.FormatInt(left-last, 10), "1", "1", "1", "1", "1"} {
		admitted := int64(1)
		if i > last {
			admitted = 0
		}
		var a answer
		until(t, "the client does not go on", func() bool {
			a = l.client.send([][]string{take(l.once.key, "ID", "rest-"+strconv.Itoa(i), "COST", cost)})[0]
			l.worries.note(a.err)
			return a.err == nil
		})
		five := a.numbers()
		require.Len(t, five, 5)
		require.Equal(t, admitted, five[0], "command %d of those that take the last units", i)
		require.Equal(t, max(0, last-int64(i)), five[1])
	}
}
