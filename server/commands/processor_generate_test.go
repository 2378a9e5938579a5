package commands

import (
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/scripts"
	"github.com/weir-project/weir/server/servertest"
	"github.com/weir-project/weir/server/syntax"
)

// commandSource draws commands from the command table and the script table, so it draws a new command or script
// without a change. The arguments follow the syntax line, and some of them are invalid.
type commandSource struct {
	*rand.Rand
	drawn    int
	commands []*command
	sums     []scripts.Sum
	recent   [64]string // keys
	held     string     // the id of the last RL.RESERVE
	called   map[scripts.Sum][]string
}

func newCommandSource(seed uint64) *commandSource {
	return &commandSource{
		Rand: rand.New(rand.NewPCG(seed, 21)), commands: comparedCommands(),
		called: make(map[scripts.Sum][]string), sums: slices.SortedFunc(maps.Keys(scripts.Known.BySum),
			func(a, b scripts.Sum) int { return slices.Compare(a[:], b[:]) }),
	}
}

// notCompared maps each command that the source cannot send to the reason.
var notCompared = map[string]string{
	"eval":      "it needs the text of a script; EVALSHA does the same",
	"rl.wait":   "it waits; the decision that it carries is compared",
	"rl.events": "it may wait; XRANGE shows the same events",
	"xread":     "it may wait; XRANGE shows the same events",
	"rl.top":    "each node counts for itself, about",
	"keys":      "the order of keys is each node's own",
	"scan":      "the order of keys is each node's own",
	"randomkey": "the choice is each node's own",
	"dbsize":    "see keys",
}

// comparedCommands returns the commands that decide, and the commands that show what was decided.
func comparedCommands() (compared []*command) {
	each(newCommandTable(families()...).all, func(cmd *command) {
		looks := cmd.read.run != nil &&
			(cmd.keys.first > 0 || cmd.group == groupLook || cmd.group == groupPolicy) || cmd.group == groupDecide
		if _, excluded := notCompared[cmd.Full]; !excluded && (cmd.plan != nil || looks) {
			compared = append(compared, cmd)
		}
	})
	return compared
}

// fractions is the number of fractional limits with which the sequence begins. They belong to a script that raises 2 to
// a power. For one in ten of them, the last digit depends on how the processor rounds multiply and add.
const fractions = 100

// next draws a command, or a transaction of a few commands.
func (g *commandSource) next() [][]string {
	if g.drawn < 2*fractions {
		g.drawn++
		most := strconv.FormatFloat(0.036+float64(g.drawn/2)/500, 'f', 3, 64)
		return [][]string{{"EVALSHA", fastifySum, "1", "fastify:" + most, "4503599627370497", most, "false", "true"}}
	}
	if g.IntN(50) > 0 {
		return [][]string{g.command()}
	}
	lines := [][]string{{"MULTI"}}
	for range 1 + g.IntN(4) {
		lines = append(lines, g.command())
	}
	return append(lines, []string{"EXEC"})
}

func (g *commandSource) command() []string {
	g.drawn++
	if g.IntN(3) == 0 {
		return g.script()
	}
	if g.held != "" && g.IntN(50) == 0 { // few holds are made: most requests name a policy that there is not
		n := strconv.Itoa(1 + g.IntN(20))
		return pick(g, [][]string{{"RL.COMMIT", g.held, n}, {"RL.EXTEND", g.held, n, "SEQ", "1"}})
	}
	cmd := g.commands[g.IntN(len(g.commands))]
	line := strings.Fields(strings.ToUpper(strings.ReplaceAll(cmd.Full, "|", " ")))
	switch cmd.Full {
	case "evalsha":
		return g.script()
	case "rl.explain":
		return append(line, g.decision()...)
	case "rl.policy|override": // the syntax line has alternatives that the parser does not group
		terms := pick(g, [][]string{append([]string{"LIMIT"}, g.limit()...), {"UNLIMITED"}, {"NONE"},
			{"UNLIMITED", "TTL", "1h"}})
		return append(append(line, g.value(cmd, "policy"), g.value(cmd, "pattern")), terms...)
	}
	return g.named(cmd, append(line, g.sequence(cmd, syntax.Parse(cmd.syntax))...))
}

// decision draws the command inside an RL.EXPLAIN.
func (g *commandSource) decision() []string {
	for {
		if cmd := g.commands[g.IntN(len(g.commands))]; cmd.group == groupDecide && cmd.plan != nil {
			return g.named(cmd, append([]string{cmd.name}, g.sequence(cmd, syntax.Parse(cmd.syntax))...))
		}
	}
}

// named adds an ID to a command that would otherwise get a random ID from the server. It takes SPLIT from a command
// without ELSE, which would be an error too often.
func (g *commandSource) named(cmd *command, line []string) []string {
	if i := slices.Index(line, "SPLIT"); i >= 0 && !slices.Contains(line, "ELSE") {
		line = slices.Delete(line, i, i+1)
	}
	random := cmd.Full == "rl.acquire" || cmd.Full == "rl.reserve"
	if random && !slices.Contains(line, "ID") && !slices.Contains(line, "HOLDER") {
		line = append(line, "ID", g.value(cmd, "id"))
	}
	return line
}

func (g *commandSource) sequence(cmd *command, args []syntax.Argument) (words []string) {
	for _, a := range args {
		if a.Optional && g.IntN(3) > 0 {
			continue
		}
		for again := true; again; again = a.Multiple && g.IntN(3) == 0 {
			words = append(words, g.argument(cmd, a)...)
		}
	}
	return words
}

func (g *commandSource) argument(cmd *command, a syntax.Argument) (words []string) {
	switch {
	case a.Kind == "oneof":
		return g.argument(cmd, a.Inner[g.IntN(len(a.Inner))])
	case a.Kind == "pure-token":
		return []string{a.Token}
	}
	if a.Token != "" {
		words = append(words, a.Token)
	}
	switch {
	case a.Kind == "block":
		return append(words, g.sequence(cmd, a.Inner)...)
	case a.Name == "algorithm":
		return append(words, g.limit()...)
	case a.Name == "argument":
		return words
	}
	return append(words, g.value(cmd, a.Name))
}

// limit draws the arguments of LIMIT.
func (g *commandSource) limit() []string {
	for {
		cmd := g.commands[g.IntN(len(g.commands))]
		if cmd.group != groupDecide || cmd.plan == nil || cmd.Full == "rl.acquire" || cmd.Full == "rl.reserve" {
			continue
		}
		args := slices.DeleteFunc(syntax.Parse(cmd.syntax)[1:], func(a syntax.Argument) bool { return a.Optional })
		return append([]string{strings.TrimPrefix(cmd.name, "RL.")}, g.sequence(cmd, args)...)
	}
}

// script draws a call of a recognised script, often with the arguments of its previous call.
func (g *commandSource) script() []string {
	sum := g.sums[g.IntN(len(g.sums))]
	if last := g.called[sum]; last != nil && g.IntN(2) == 0 {
		return last
	}
	sc := scripts.Known.BySum[sum]
	keys, args := make([]string, sc.Keys), make([]string, len(sc.Args))
	for i := range keys {
		keys[i] = g.key(fmt.Sprint("script", sc.ID, i))
	}
	for i, kind := range sc.Args {
		args[i] = g.scriptArg(scripts.ArgKind(kind))
	}
	window := int64(0)
	if now := strings.IndexByte(sc.Args, byte(scripts.ArgInteger)); sc.Windows {
		of := func(s string) float64 { f, _ := strconv.ParseFloat(s, 64); return f } // an error is an invalid argument
		window = engine.Truncate(math.Floor(of(args[now]) / of(args[now+1])))
	}
	if sc.ID == engine.DurationTake || sc.ID == engine.DurationLook { // these accept only times of ten digits
		now := strconv.FormatInt(servertest.TestWallNs/1e9+g.Int64N(100), 10)
		args[0], args[1] = now+pick(g, []string{"", ".5"}), now
	}
	nameKeys(sc, keys, window)
	line := slices.Concat([]string{"EVALSHA", hex.EncodeToString(sum[:]), strconv.Itoa(sc.Keys)}, keys, args)
	g.called[sum] = line
	return line
}

// key draws one of a few keys. The prefix usually keeps different kinds of limiters apart.
func (g *commandSource) key(kind string) string {
	if g.IntN(40) == 0 {
		return pick(g, g.recent[:])
	}
	key := fmt.Sprintf("%s:%d:%d", kind, g.drawn/5000, g.IntN(3))
	g.recent[g.IntN(len(g.recent))] = key
	return key
}

func pick[T any](g *commandSource, from []T) T { return from[g.IntN(len(from))] }
