package chaos

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
)

// fakeBooks answers the fake's commands about policies and holds. It uses the real engine and the fake's clock, and
// makes the configured mistake in the requests.
type fakeBooks struct {
	*fake
	table   *engine.Table
	pairs   map[string][]engine.Pair // of each hold, by its ID
	chances int                      // how often the mistake could have been made
}

func newFakeBooks(f *fake) *fakeBooks {
	return &fakeBooks{fake: f, table: engine.NewTable(engine.Options{}), pairs: map[string][]engine.Pair{}}
}

// errs reports whether to make the mistake now, which is at every fifth chance.
func (b *fakeBooks) errs(m mistake) bool {
	if b.mistake == m {
		b.chances++
	}
	return b.mistake == m && b.chances%5 == 0
}

// do runs a command. It returns nil if the command is not about policies or holds.
func (b *fakeBooks) do(args []string) any {
	switch args[0] {
	case "RL.CHECK":
		return b.check(args)
	case "RL.RESERVE":
		return b.reserve(args)
	case "RL.COMMIT":
		units := number(args[2])
		d := b.decide(engine.Op{Code: engine.OpCommit, Key: []byte(args[1]), Cost: units})
		if pairs := b.pairs[args[1]]; pairs != nil && b.errs(commitAgain) {
			b.decide(checkOf(pairs, 1))
		}
		return b.reply(d, d.Remaining)
	case "RL.CANCEL":
		if b.errs(cancelForgotten) {
			return int64(1)
		}
		d := b.decide(engine.Op{Code: engine.OpCancel, Key: []byte(args[1]), Cost: 1})
		return b.reply(d, d.Allowed)
	case "RL.POLICY":
		return b.policy(args[1:])
	}
	return nil
}

func (b *fakeBooks) check(args []string) any {
	end := 1
	for args[end] != "COST" {
		end += 2
	}
	pairs := pairsOf(args[1:end])
	op := checkOf(pairs, number(args[end+1]))
	op.ID = []byte(option(args, "ID"))
	if len(pairs) > 1 && b.errs(partOfCheck) {
		op.Also = nil
	}
	d := b.decide(op)
	return b.reply(d, append(fiveOf(d), string(op.PairAt(int(d.Pair)).Policy)))
}

func (b *fakeBooks) reserve(args []string) any {
	pairs, id := pairsOf(args[1:3]), option(args, "ID")
	if args[5] == "AND" {
		pairs = append(pairs, pairsOf(args[6:len(args)-2])...)
	}
	op := checkOf(pairs, number(args[3]))
	op.Code, op.ID, op.TTLNs = engine.OpReserve, []byte(id), number(strings.TrimSuffix(args[4], "ms"))*int64(
		time.Millisecond)
	if b.mistake == holdsEndEarly {
		op.TTLNs /= 10
	}
	b.pairs[id] = pairs
	d := b.decide(op)
	if d.Allowed == 0 {
		return b.reply(d, append(fiveOf(d), nil))
	}
	return b.reply(d, append(fiveOf(d), id))
}

func (b *fakeBooks) policy(args []string) any {
	op := engine.Op{Code: engine.OpPolicy, Key: []byte(args[1]), Policy: &engine.PolicyChange{Do: engine.PolicyDelete}}
	if args[0] == "SET" {
		terms := &engine.Policy{}
		for i, arg := range args {
			if arg == "LIMIT" {
				terms.Limits = append(terms.Limits,
					engine.PolicyLimit{Limit: engine.Limit{Algorithm: engine.FixedWindow, Mode: engine.Forever,
						Max: number(args[i+3])}})
			}
		}
		if old := b.table.Policies().Get(op.Key); old != nil && b.mistake == halfChange {
			terms.Limits = append(terms.Limits[:1:1], old.Limits[1:]...)
		}
		op.Policy = &engine.PolicyChange{Terms: terms, Reset: args[len(args)-1] == "RESET" &&
			b.mistake != resetForgotten}
	}
	d := b.decide(op)
	if args[0] == "DEL" {
		return d.Allowed
	}
	return d.Remaining
}

func (b *fakeBooks) decide(op engine.Op) engine.Decision {
	var out [1]engine.Decision
	b.table.Decide(engine.Stamp{NowNs: int64(time.Hour + time.Since(b.start))}, []engine.Op{op}, out[:])
	return out[0]
}

// reply returns reply, or the error of the decision in its place.
func (b *fakeBooks) reply(d engine.Decision, reply any) any {
	switch d.Status {
	case engine.UnknownPolicy:
		return ErrorReply("ERR there is no policy")
	case engine.NoHold:
		return ErrorReply("NOHOLD")
	case engine.OtherTerms:
		return ErrorReply("ERR the hold is settled with another actual")
	case engine.OK:
		return reply
	}
	return ErrorReply(fmt.Sprint("ERR status ", d.Status))
}

func checkOf(pairs []engine.Pair, units int64) engine.Op {
	return engine.Op{Code: engine.OpCheck, Text: pairs[0].Policy, Key: pairs[0].Key, Also: pairs[1:], Cost: units}
}

func pairsOf(args []string) (pairs []engine.Pair) {
	for i := 0; i < len(args); i += 2 {
		pairs = append(pairs, engine.Pair{Policy: []byte(args[i]), Key: []byte(args[i+1])})
	}
	return pairs
}

func fiveOf(d engine.Decision) []any {
	return []any{d.Allowed, d.Remaining, d.RetryMs, d.ResetMs, d.Limit}
}

func number(arg string) int64 {
	n, _ := strconv.ParseInt(arg, 10, 64)
	return n
}
