package commands

import (
	"slices"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/quote"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/syntax"
)

func commandCommand() *command {
	return &command{
		name: "COMMAND", arity: -1, group: groupServer, flags: "loading stale", summary: "The commands of the server",
		run: func(s *Session, _ [][]byte) { writeDescriptions(s.Reply, s.srv.table.all) },
		subs: []*command{
			{name: "COUNT", arity: 2, summary: "The number of commands",
				run: func(s *Session, _ [][]byte) { s.Int(int64(len(s.srv.table.all))) }},
			{name: "INFO", arity: -2, syntax: "[command ...]", summary: "Arity, flags and keys of commands",
				run: runCommandInfo},
			{name: "DOCS", arity: -2, syntax: "[command ...]", summary: "Descriptions of commands",
				run: runCommandDocs},
			{name: "LIST", arity: -2, syntax: "[FILTERBY ACLCAT category|PATTERN pattern|MODULE name]",
				summary: "The names of commands", run: runCommandList},
			{name: "GETKEYS", arity: -3, syntax: "command [argument ...]", summary: "The keys in a command",
				run: runGetKeys},
			{name: "GETKEYSANDFLAGS", arity: -3, syntax: "command [argument ...]",
				summary: "The keys in a command and what is done to them", run: runGetKeysAndFlags},
		},
	}
}

func writeDescriptions(w resp.Reply, commands []*command) {
	w.Array(len(commands))
	for _, cmd := range commands {
		writeDescription(w, cmd)
	}
}

// writeDescription writes one command as COMMAND does.
func writeDescription(w resp.Reply, cmd *command) {
	w.Array(10)
	w.Bulk(cmd.Full)
	w.Int(int64(cmd.arity))
	w.SimpleSet(strings.Fields(cmd.flags))
	w.Int(int64(cmd.keys.first))
	w.Int(int64(cmd.keys.last))
	w.Int(int64(cmd.keys.step))
	w.SimpleSet(cmd.categories)
	w.Array(0) // tips
	writeKeySpecs(w, cmd)
	writeDescriptions(w, cmd.subs)
}

// writeKeySpecs writes the positions of the keys in the format of Redis 7.
func writeKeySpecs(w resp.Reply, cmd *command) {
	if cmd.keys.first == 0 {
		w.Array(0)
		return
	}
	last := cmd.keys.last
	if last > 0 {
		last -= cmd.keys.first // relative to the first
	}
	w.Array(1)
	w.Map(3)
	w.Bulk("flags")
	w.SimpleSet(keyFlags(cmd))
	w.Bulk("begin_search")
	w.Map(2)
	w.Pair("type", "index")
	w.Bulk("spec")
	w.Map(1)
	w.PairInt("index", int64(cmd.keys.first))
	w.Bulk("find_keys")
	w.Map(2)
	w.Pair("type", "range")
	w.Bulk("spec")
	w.Map(3)
	w.PairInt("lastkey", int64(last))
	w.PairInt("keystep", int64(cmd.keys.step))
	w.PairInt("limit", 0)
}

func keyFlags(cmd *command) []string {
	if cmd.Write {
		return []string{"RW", "ACCESS", "UPDATE"}
	}
	return []string{"RO", "ACCESS"}
}

// named finds a command by a name such as get or client|list.
func (t *commandTable) named(name []byte) *command {
	container, sub, _ := strings.Cut(string(name), "|")
	cmd := t.find([]byte(container))
	if cmd != nil && sub != "" {
		return cmd.sub([]byte(sub))
	}
	return cmd
}

func runCommandInfo(s *Session, args [][]byte) {
	if len(args) == 2 {
		writeDescriptions(s.Reply, s.srv.table.all)
		return
	}
	s.Array(len(args) - 2)
	for _, name := range args[2:] {
		if cmd := s.srv.table.named(name); cmd != nil {
			writeDescription(s.Reply, cmd)
		} else {
			s.NullArray()
		}
	}
}

func runCommandDocs(s *Session, args [][]byte) {
	commands := s.srv.table.all
	if len(args) > 2 {
		commands = nil
		for _, name := range args[2:] {
			if cmd := s.srv.table.named(name); cmd != nil {
				commands = append(commands, cmd)
			}
		}
	}
	writeDocs(s.Reply, commands)
}

func writeDocs(w resp.Reply, commands []*command) {
	w.Map(len(commands))
	for _, cmd := range commands {
		w.Bulk(cmd.Full)
		arguments := cmd.parsed()
		w.Map(4 + int(oneIf(len(arguments) > 0)+oneIf(len(cmd.subs) > 0)))
		w.Pair("summary", cmd.summary)
		w.Pair("since", since)
		w.Pair("group", cmd.group)
		w.Pair("complexity", cmd.cost)
		if len(arguments) > 0 {
			w.Bulk("arguments")
			writeArguments(w, arguments)
		}
		if len(cmd.subs) > 0 {
			w.Bulk("subcommands")
			writeDocs(w, cmd.subs)
		}
	}
}

// writeArguments writes arguments as COMMAND DOCS does.
func writeArguments(w resp.Reply, args []syntax.Argument) {
	w.Array(len(args))
	for _, a := range args {
		flags := a.Flags()
		w.Map(2 + int(oneIf(a.Token != "")+oneIf(len(flags) > 0)+oneIf(a.Kind == "key")+oneIf(len(a.Inner) > 0)))
		w.Pair("name", a.Name)
		w.Pair("type", a.Kind)
		if a.Kind == "key" {
			w.PairInt("key_spec_index", 0)
		}
		if a.Token != "" {
			w.Pair("token", a.Token)
		}
		if len(flags) > 0 {
			w.Bulk("flags")
			w.SimpleSet(flags)
		}
		if len(a.Inner) > 0 {
			w.Bulk("arguments")
			writeArguments(w, a.Inner)
		}
	}
}

func runCommandList(s *Session, args [][]byte) {
	keep := func(*command) bool { return true }
	switch {
	case len(args) == 2:
	case len(args) != 5 || !limits.Is(args[2], "FILTERBY"):
		s.fail(arg.ErrSyntax)
		return
	case limits.Is(args[3], "ACLCAT"):
		category := "@" + lower(args[4])
		keep = func(cmd *command) bool { return slices.Contains(cmd.categories, category) }
	case limits.Is(args[3], "PATTERN") && len(args[4]) <= maxPatternBytes:
		pattern := []byte(lower(args[4]))
		keep = func(cmd *command) bool { return engine.MatchGlob(pattern, []byte(cmd.Full)) }
	case limits.Is(args[3], "MODULE"):
		keep = func(*command) bool { return false }
	default:
		s.fail(arg.ErrSyntax)
		return
	}
	var names []string
	for _, cmd := range s.srv.table.all {
		if keep(cmd) {
			names = append(names, cmd.Full)
		}
	}
	s.Strings(names)
}

// keysIn finds the keys of the command that is the argument of COMMAND GETKEYS.
func keysIn(srv *Shared, args [][]byte) (keys [][]byte, cmd *command, err error) {
	cmd, err = srv.table.resolve(args)
	switch {
	case err == nil && cmd.carried != nil:
		keys, _, err = keysIn(srv, cmd.carried(args))
		return keys, cmd, err
	case cmd == nil:
		return nil, nil, resp.Error("ERR Invalid command specified: command must be one of COMMAND LIST, not " +
			quote.Text(args[0]))
	case err != nil:
		return nil, nil, resp.Error("ERR Invalid number of arguments specified for command: it must be " + cmd.usage())
	case cmd.name == "XREAD":
		a, err := parseXRead(args[1:])
		return a.keys, cmd, err
	case cmd.has("movablekeys"):
		n, ok := limits.Int(args[2])
		if !ok || n < 1 || n > int64(len(args)-3) {
			return nil, nil, resp.Error("ERR Invalid arguments specified for command: it must be " + cmd.usage())
		}
		return args[3 : 3+n], cmd, nil
	case cmd.keys.first == 0:
		return nil, nil, resp.Error("ERR The command has no key arguments")
	}
	if cmd.keys.step > 1 {
		return keysOfPairs(args[1:], checkOptions), cmd, nil
	}
	for _, at := range cmd.keysOf(len(args)) {
		keys = append(keys, args[at])
	}
	if cmd.name == "RL.RESERVE" && len(args) > 5 {
		keys = append(keys, keysOfPairs(args[5:], reserveOptions)...)
	}
	return keys, cmd, nil
}

// keysOfPairs returns the keys of the pairs of a policy and a key, up to the first option.
func keysOfPairs(args [][]byte, options limits.Option) (keys [][]byte) {
	for len(args) > 1 {
		if isElse(args[0]) || limits.Is(args[0], "AND") {
			args = args[1:]
			continue
		}
		if endsPairs(args, options) {
			break
		}
		keys, args = append(keys, args[1]), args[2:]
	}
	return keys
}

func runGetKeys(s *Session, args [][]byte) {
	keys, _, err := keysIn(s.srv, args[2:])
	if !s.guarded(err) {
		return
	}
	writeNames(s.Reply, keys)
}

func runGetKeysAndFlags(s *Session, args [][]byte) {
	keys, cmd, err := keysIn(s.srv, args[2:])
	if !s.guarded(err) {
		return
	}
	s.Array(len(keys))
	for _, key := range keys {
		s.Array(2)
		s.BulkBytes(key)
		s.SimpleSet(keyFlags(cmd))
	}
}
