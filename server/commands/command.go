package commands

import (
	"slices"
	"strings"
	"sync"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/service"
	"github.com/weir-project/weir/server/syntax"
)

// command is one row of the command table. Dispatch, arity errors, COMMAND, weir help and docs/commands.md are all made
// from these rows.
type command struct {
	service.Command
	name    string // in capitals; for a subcommand its own word only
	arity   int    // number of arguments, name included; negative: at least that many
	flags   string // Redis' command flags, separated by spaces
	keys    keySpec
	group   string
	syntax  string                   // the arguments, as the reference shows them
	parsed  func() []syntax.Argument // syntax, parsed once: a client may ask for it often
	summary string                   // one line
	details string                   // what a user needs to know, in paragraphs
	params  []param
	reply   string // the meaning of the answer
	cost    string // complexity; empty: O(1)
	shown   []example

	// A command is an operation of the engine, reads limiters (read), or does anything else at once (run). plan appends
	// the operations for its arguments to s.batch. After the decision, answer writes the reply to these operations.
	plan   func(s *Session, args [][]byte) error
	answer func(s *Session, ops []engine.Op, ds []engine.Decision)
	read   reading
	run    func(s *Session, args [][]byte)
	// alone runs the command if plan returns errAlone. All commands before it have been answered then.
	alone func(s *Session, args [][]byte)
	subs  []*command
	// carried returns the command that the arguments of RL.WAIT and RL.EXPLAIN contain. It is nil for other commands.
	// planDecision checks the permissions for the contained command.
	carried func(args [][]byte) [][]byte
	// bulky: the work or the reply of the command grows with the keys or clients of the server, so only a few bulky
	// commands run at a time (Shared.bulky).
	bulky bool
	// noEffect says why the command may answer OK and do nothing. It is empty for commands that do something.
	noEffect string
	// instant: the command never waits, not even during CLIENT PAUSE (Exempt), so it may run on the goroutine of a
	// poller.
	instant bool

	// newCommandTable sets the following fields.
	parent  *command
	noAuth  bool // allowed before AUTH
	noMulti bool // refused in a transaction
	atOnce  bool // not queued in a transaction
	pubsub  bool // allowed to a subscribed RESP2 client
	keyed   bool // some arguments are keys
	audited bool // is written to the log
	quick   bool // an operation that may be deferred without further checks

	categories []string // ACL categories, each with its @
}

// keySpec describes which arguments are keys: every step-th from first to last. A negative last counts from the end.
// The zero value means no keys.
type keySpec struct{ first, last, step int }

// param is one argument in the reference.
type param struct{ name, meaning string }

// example is one command in the reference with its answer. A test checks the answer on an idle limiter.
type example struct{ send, answer, note string }

// since is the release in which the commands appeared.
const since = "0.1.0"

var oneKey = keySpec{1, 1, 1}

// The groups, in the order of the reference.
const (
	groupDecide  = "decisions"
	groupPolicy  = "policies"
	groupCorrect = "settling" // corrections of decisions, and blocks
	groupLook    = "looking"
	groupDialect = "dialects"
	groupConn    = "connection"
	groupMulti   = "transactions"
	groupPubSub  = "pubsub"
	groupServer  = "server"
	groupCluster = "cluster"
)

// commandTable finds commands. It does not change after newCommandTable.
type commandTable struct {
	all    []*command // in the order of the reference
	byName map[string]*command
	bySlot []*command // every command and subcommand
}

// newCommandTable makes a table of the families of commands, in this order.
func newCommandTable(families ...[]*command) *commandTable {
	t := &commandTable{byName: make(map[string]*command)}
	for _, family := range families {
		for _, cmd := range family {
			t.add(cmd, nil)
			t.byName[cmd.name] = cmd
			t.all = append(t.all, cmd)
		}
	}
	return t
}

func (t *commandTable) add(cmd, parent *command) {
	cmd.parent, cmd.Full, cmd.Slot = parent, strings.ToLower(cmd.name), len(t.bySlot)
	t.bySlot = append(t.bySlot, cmd)
	if parent != nil {
		cmd.Full = parent.Full + "|" + cmd.Full
		cmd.group = parent.group
		cmd.pubsub, cmd.Secret, cmd.Exempt = parent.pubsub, parent.Secret, parent.Exempt
	}
	if cmd.cost == "" {
		cmd.cost = "O(1)"
	}
	cmd.parsed = sync.OnceValue(func() []syntax.Argument { return syntax.Parse(cmd.syntax) })
	cmd.noAuth = cmd.noAuth || cmd.has("no_auth")
	cmd.noMulti = cmd.noMulti || cmd.has("no_multi")
	cmd.keyed = cmd.keys.first != 0 || cmd.has("movablekeys")
	cmd.categories = cmd.findCategories()
	cmd.audited = cmd.isAudited()
	cmd.quick = cmd.plan != nil && !cmd.audited
	cmd.Write = cmd.has("write")
	if cmd.subs != nil {
		cmd.subs = append(cmd.subs, helpSubcommand(cmd))
	}
	for _, sub := range cmd.subs {
		t.add(sub, cmd)
	}
}

// infos lists all commands. The subcommands of a command come before it.
func (t *commandTable) infos() (all []*service.Command) {
	var each func(commands []*command)
	each = func(commands []*command) {
		for _, cmd := range commands {
			each(cmd.subs)
			all = append(all, &cmd.Command)
		}
	}
	each(t.all)
	return all
}

// maxNameBytes is longer than every command name.
const maxNameBytes = 24

// find returns the command with a name in any case, or nil. It does not allocate.
func (t *commandTable) find(name []byte) *command {
	var buf [maxNameBytes]byte
	if len(name) > len(buf) {
		return nil
	}
	for i, c := range name {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		buf[i] = c
	}
	return t.byName[string(buf[:len(name)])]
}

// resolve finds the command that args call, which is a subcommand if the command is a container.
func (t *commandTable) resolve(args [][]byte) (*command, error) {
	cmd := t.find(args[0])
	if cmd == nil {
		return nil, unknownCommand(args)
	}
	if cmd.subs != nil && len(args) > 1 {
		sub := cmd.sub(args[1])
		if sub == nil {
			return cmd, arg.UnknownSubcommand(cmd.name, args[1])
		}
		cmd = sub
	}
	if !arg.Fits(cmd.arity, len(args)) {
		return cmd, wrongArity(cmd)
	}
	return cmd, nil
}

// sub returns the subcommand with a name in any case.
func (c *command) sub(name []byte) *command {
	for _, sub := range c.subs {
		if limits.Is(name, sub.name) {
			return sub
		}
	}
	return nil
}

func (c *command) has(flag string) bool {
	return slices.Contains(strings.Fields(c.flags), flag)
}

// keysOf returns the positions of the keys among n arguments, the name included.
func (c *command) keysOf(n int) []int {
	if c.keys.first == 0 {
		return nil
	}
	last := c.keys.last
	if last < 0 {
		last += n
	}
	var at []int
	for i := c.keys.first; i <= min(last, n-1); i += c.keys.step {
		at = append(at, i)
	}
	return at
}

// helpSubcommand makes the HELP of a container from its other subcommands.
func helpSubcommand(cmd *command) *command {
	subs := cmd.subs
	return &command{name: "HELP", arity: 2, summary: "This text", run: func(s *Session, _ [][]byte) {
		lines := []string{cmd.name + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"}
		for _, sub := range subs {
			lines = append(lines, strings.TrimSpace(sub.name+" "+sub.syntax), "    "+sub.summary+".")
		}
		s.Array(len(lines) + 2)
		for _, line := range append(lines, "HELP", "    Print this help.") {
			s.Simple(line)
		}
	}}
}

func (c *command) title() string { return strings.ToUpper(strings.ReplaceAll(c.Full, "|", " ")) }

// usage returns the command with its arguments. For a container it names the way to list the subcommands.
func (c *command) usage() string {
	if len(c.subs) > 0 && c.syntax == "" {
		return c.title() + " subcommand [argument ...]; " + c.title() + " HELP lists them"
	}
	return strings.TrimSpace(c.title() + " " + c.syntax)
}
