package commands

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/raftstore/wire"
	"github.com/weir-project/weir/server/servertest"
)

// replicatedLimiter decides with two tables. One receives the operations, and the other reads them from the log, as the
// other nodes of a cluster do.
type replicatedLimiter struct {
	*servertest.TableLimiter
	t        testing.TB
	follower *engine.Table
	log      []byte // of the last call
	ops      [engine.NumOps]int
	scripts  [engine.NumScripts]int
}

func (l *replicatedLimiter) Decide(ops []engine.Op, out []engine.Decision) error {
	l.replicate(ops, false)
	return l.TableLimiter.Decide(ops, out)
}

func (l *replicatedLimiter) DecideAtomic(ops []engine.Op, out []engine.Decision) error {
	l.replicate(ops, true)
	return l.TableLimiter.DecideAtomic(ops, out)
}

func (l *replicatedLimiter) replicate(ops []engine.Op, atomic bool) {
	var encoder wire.Encoder
	var decoder wire.Decoder
	l.log = encoder.Call(l.log[:0], ops, atomic)
	decoder.Reset(l.log)
	call, _, err := decoder.Next()
	require.NoError(l.t, err)
	for i := range call.Ops {
		require.True(l.t, wire.Valid(&call.Ops[i]), "%+v", call.Ops[i])
	}
	out := make([]engine.Decision, len(call.Ops))
	if atomic {
		l.follower.DecideAtomic(l.Now(), call.Ops, out)
	} else {
		l.follower.Decide(l.Now(), call.Ops, out)
	}
	for i := range out {
		if out[i].Status != engine.OK {
			continue
		}
		if l.ops[call.Ops[i].Code]++; call.Ops[i].Script != nil {
			l.scripts[call.Ops[i].Script.ID]++
		}
	}
}

// trace is the result of a sequence of commands.
type trace struct {
	chain    []uint64 // after each command: a hash of everything so far
	commands map[string]int
	lim      *replicatedLimiter
	shown    string // the command to show and its effects
}

// suggestion matches the advice in an error. The host's clock limits the rate of suggestions, so they are not part of
// the comparison.
var suggestion = regexp.MustCompile(` \(did you mean .*\?\)`)

// traceCommands runs this many commands, and shows one of them.
func traceCommands(t testing.TB, seed uint64, commands, show int) *trace {
	srv := newTestServer(t, Config{BlacklistKey: blacklistKey})
	table := srv.lim
	// With one seed, SSCAN shows the members in one order in every process.
	table.Table = engine.NewTable(engine.Options{Shards: 8, HashSeed: engine.HashSeed{1}})
	table.Stamp.NowNs, table.Stamp.WallOffsetNs = servertest.TestWallNs, 123_456_789
	tr := &trace{commands: make(map[string]int)}
	tr.lim = &replicatedLimiter{TableLimiter: table, t: t, follower: engine.NewTable(engine.Options{Shards: 2})}
	srv.Shared, _ = NewShared(srv.cfg, tr.lim)
	c, g, hash := srv.client(t), newCommandSource(seed), fnv.New64a()
	for len(tr.chain) < commands {
		table.Stamp.NowNs += g.pauseNs()
		for _, line := range g.next() {
			tr.lim.log = tr.lim.log[:0]
			reply := suggestion.ReplaceAllString(c.raw(line...), "")
			_, _ = hash.Write([]byte(strings.Join(line, " ")))
			_, _ = hash.Write(tr.lim.log)
			_, _ = hash.Write([]byte(reply))
			if len(tr.chain)%1000 == 0 {
				tr.digest(hash.Write)
			}
			if len(tr.chain) == show {
				tr.shown = fmt.Sprintf("%q at %+v\n  answered %q\n  log %x", line, table.Stamp, reply, tr.lim.log)
			}
			if cmd, _ := c.sess.srv.table.resolve(arguments(line)); cmd != nil && reply[0] != '-' {
				tr.commands[cmd.Full]++
			}
			tr.chain = append(tr.chain, hash.Sum64())
		}
		if g.IntN(500) == 0 {
			tr.evict(g)
		}
	}
	tr.digest(hash.Write)
	tr.chain = append(tr.chain, hash.Sum64())
	return tr
}

// digest adds the hash of the state. Both tables must have the same state.
func (tr *trace) digest(write func([]byte) (int, error)) {
	sum := tr.lim.Table.StateHash(tr.lim.Stamp)
	require.Equal(tr.lim.t, sum, tr.lim.follower.StateHash(tr.lim.Stamp), "after %d commands", len(tr.chain))
	_, _ = write(binary.LittleEndian.AppendUint64(nil, sum))
}

// evict sends the operation that only a node sends: it evicts a limiter to free memory.
func (tr *trace) evict(g *commandSource) {
	if key := pick(g, g.recent[:]); key != "" {
		_ = tr.lim.Decide([]engine.Op{{Code: engine.OpForget, Key: []byte(key)}}, make([]engine.Decision, 1))
	}
}

// pauseNs draws the time between two commands.
func (g *commandSource) pauseNs() int64 {
	switch n := g.IntN(1000); {
	case n < 400:
		return 0
	case n < 700:
		return g.Int64N(1e6)
	case n < 950:
		return g.Int64N(2e9)
	case n < 998:
		return g.Int64N(300e9)
	}
	return g.Int64N(40 * 24 * 3600e9)
}

func arguments(line []string) (args [][]byte) {
	for _, word := range line {
		args = append(args, []byte(word))
	}
	return args
}
