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

	"github.com/weir-project/weir/engine/hashslot"
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
	kind    clientKind
	limits  []limits // one for each Raft group, or a single one
	worries *worries
	tokens  atomic.Int64
	sent    atomic.Int64 // commands that were given to the client
	groups  int
	pace    pace
}

// pace measures the longest time in which no decision of a Raft group was acknowledged.
type pace struct {
	mu      sync.Mutex
	last    []time.Time // the last acknowledgement of each group
	longest time.Duration
}

// restart begins a new measurement of several groups.
func (p *pace) restart(groups int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.longest = slices.Repeat([]time.Time{time.Now()}, groups), 0
}

// note enters that a decision of a group was acknowledged.
func (p *pace) note(group int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.longest, p.last[group] = max(p.longest, now.Sub(p.last[group])), now
}

// limits are the limiters of a load in one Raft group.
type limits struct {
	once  *tally // of commands with an ID, which are resent until they are acknowledged
	plain *tally // of commands without an ID, which are sent once
}

// newLoad returns a load on the limiters of c whose keys begin with the given prefixes.
func (c *cluster) newLoad(client clusterClient, kind clientKind, prefixes ...string) *load {
	l := &load{client: client, kind: kind, worries: &worries{seen: map[string]int{}}, groups: c.groups}
	for _, prefix := range prefixes {
		l.limits = append(l.limits, limits{newTally(prefix + "once"), newTally(prefix + "plain")})
	}
	return l
}

// during runs what while the callers send commands. Some decisions are acknowledged before what begins, and some after
// it has ended.
func (l *load) during(t *testing.T, name string, what func()) {
	t.Helper()
	began := l.acknowledged()
	l.pace.restart(l.groups)
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for range l.kind.callers {
		callers.Go(func() { l.call(stop) })
	}
	ended := sync.OnceFunc(func() { close(stop); callers.Wait() })
	defer ended()
	l.goesOn(t)
	what()
	l.goesOn(t)
	ended()
	assert.Empty(t, l.unexpected())
	t.Logf("%s: %d acknowledged, errors %v, longest gap %v", name, l.acknowledged()-began, l.worries.take(),
		l.pace.longest)
}

// goesOn waits until some more decisions are acknowledged in each group.
func (l *load) goesOn(t *testing.T) {
	t.Helper()
	some := 5 * pipelined / len(l.limits)
	enough := make([]int, len(l.limits))
	for i, of := range l.limits {
		enough[i] = of.acknowledged() + some
	}
	for i, of := range l.limits {
		until(t, "the client does not go on with "+of.once.key, func() bool {
			return of.acknowledged() >= enough[i] || len(l.unexpected()) > 0
		})
	}
	require.Empty(t, l.unexpected())
}

// unexpected returns the errors and answers that must not occur.
func (l *load) unexpected() []string {
	found := l.worries.unexpected()
	for _, of := range l.limits {
		found = slices.Concat(found, of.once.unexpected(), of.plain.unexpected())
	}
	return found
}

func (l *load) acknowledged() (sum int) {
	for _, of := range l.limits {
		sum += of.acknowledged()
	}
	return sum
}

func (of limits) acknowledged() int { return of.once.acknowledged() + of.plain.acknowledged() }

// counted compares what the client was told with the units that the cluster has left.
func (l *load) counted(t *testing.T, c *cluster) {
	t.Helper()
	for _, of := range l.limits {
		of.once.checkExact(t, c.left(of.once.key))
		of.plain.check(t, c.left(of.plain.key), l.kind)
	}
}

// call alternates single commands and pipelines, with and without an ID. The single commands go to the groups by turns.
// Each pipeline goes to all groups, or by turns too if the client cannot send it to several nodes.
func (l *load) call(stop <-chan struct{}) {
	for n := 0; ; n++ {
		next := l.limits[n/2%len(l.limits):][:1]
		all := l.limits
		if l.kind.keyless {
			all = next
		}
		select {
		case <-stop:
			return
		default:
		}
		if n%2 == 0 {
			l.sendPlain(next, 1)
			l.sendOnce(next, 1)
		} else {
			l.sendPlain(all, pipelined)
			l.sendOnce(all, pipelined)
		}
	}
}

// take returns a command that takes one unit, with further arguments.
func take(key string, more ...string) []string {
	return append([]string{"RL.FIXED", key, "FOREVER", strconv.FormatInt(most, 10)}, more...)
}

// send counts the commands and gives them to the client.
func (l *load) send(commands [][]string) []answer {
	l.sent.Add(int64(len(commands)))
	answers := l.client.send(commands)
	for i, a := range answers {
		if a.err == nil {
			l.pace.note(hashslot.Group(hashslot.Of([]byte(commands[i][1])), l.groups))
		}
	}
	return answers
}

// sendPlain sends n commands without an ID, to the limiters by turns.
func (l *load) sendPlain(to []limits, n int) {
	commands := make([][]string, n)
	for i := range commands {
		commands[i] = take(to[i%len(to)].plain.key)
	}
	refused := false
	for i, a := range l.send(commands) {
		to[i%len(to)].plain.note(a)
		l.worries.note(a.err)
		refused = refused || a.err != nil
	}
	if refused {
		time.Sleep(backOff)
	}
}

// sendOnce sends n commands with IDs, to the limiters by turns. It resends each until it is acknowledged, or until an
// unexpected error occurs.
func (l *load) sendOnce(to []limits, n int) {
	commands, tallies := make([][]string, n), make([]*tally, n)
	for i := range commands {
		tallies[i] = to[i%len(to)].once
		commands[i] = take(tallies[i].key, "ID", fmt.Sprintf("token-%d", l.tokens.Add(1)))
	}
	for len(commands) > 0 && len(l.unexpected()) == 0 {
		refused := 0
		for i, a := range l.send(commands) {
			if a.err == nil {
				tallies[i].note(a)
				continue
			}
			l.worries.note(a.err)
			commands[refused], tallies[refused] = commands[i], tallies[i]
			refused++
		}
		if commands, tallies = commands[:refused], tallies[:refused]; refused > 0 {
			time.Sleep(backOff)
		}
	}
}

// takeRest takes all units that are left, and checks that further requests are denied.
func (l *load) takeRest(t *testing.T, c *cluster) {
	t.Helper()
	for _, of := range l.limits {
		l.takeAll(t, of.once.key, c.left(of.once.key))
	}
}

func (l *load) takeAll(t *testing.T, key string, left int64) {
	t.Helper()
	const last = 3
	for i, cost := range []string{strconv.FormatInt(left-last, 10), "1", "1", "1", "1", "1"} {
		admitted := int64(1)
		if i > last {
			admitted = 0
		}
		var a answer
		until(t, "the client does not go on", func() bool {
			a = l.send([][]string{take(key, "ID", "rest-"+strconv.Itoa(i), "COST", cost)})[0]
			l.worries.note(a.err)
			return a.err == nil
		})
		five := a.numbers()
		require.Len(t, five, 5)
		require.Equal(t, admitted, five[0], "command %d of those that take the last units", i)
		require.Equal(t, max(0, last-int64(i)), five[1])
	}
}
