package commands

import (
	"slices"
	"strings"
)

// argument is one argument of a command as COMMAND DOCS describes it.
type argument struct {
	name     string
	token    string // the word in front of the value; of a pure token the whole
	kind     string // key, string, pure-token, oneof, block
	optional bool
	multiple bool
	inner    []argument // of oneof and block
}

// parseSyntax reads the syntax line of the command table, so that the arguments
// are written down once: words, WORDS, [optional], a|b and [again ...].
func parseSyntax(syntax string) []argument {
	spread := strings.NewReplacer("[", " [ ", "]", " ] ", "|", " | ").Replace(syntax)
	p := syntaxParser{words: strings.Fields(spread)}
	return p.sequence()
}

type syntaxParser struct {
	words []string
	depth int // of brackets
}

func (p *syntaxParser) sequence() (args []argument) {
	for len(p.words) > 0 && p.words[0] != "]" {
		switch word := p.words[0]; {
		case word == "[":
			p.words = p.words[1:]
			p.depth++
			args = p.optional(args)
			p.depth--
			p.words = p.words[1:] // ]
		default:
			args = append(args, p.one())
		}
	}
	return args
}

// optional reads what stands in brackets. What ends in dots says again the
// arguments in front of it, which become multiple, or may itself be repeated.
func (p *syntaxParser) optional(before []argument) []argument {
	inner := p.sequence()
	last := len(inner) - 1
	again := last > 0 && inner[last].name == "..."
	if again {
		inner = inner[:last]
	}
	if start := len(before) - len(inner); again && start >= 0 && sameNames(before[start:], inner) {
		repeated := asOne(before[start:])
		repeated.multiple = true
		return append(before[:start:start], repeated)
	}
	a := asOne(inner)
	a.optional, a.multiple = true, again
	return append(before, a)
}

func sameNames(a, b []argument) bool {
	return slices.EqualFunc(a, b, func(x, y argument) bool { return x.name == y.name })
}

// asOne makes a block of several arguments.
func asOne(args []argument) argument {
	if len(args) == 1 {
		return args[0]
	}
	return argument{name: args[0].name + "-block", kind: "block", inner: args}
}

// one reads a word, a WORD with its value, or alternatives. Among alternatives
// outside of brackets a WORD stands alone.
func (p *syntaxParser) one() argument {
	first := p.value(p.depth > 0)
	if !p.at("|") {
		if first.kind == "pure-token" && first.token != "" && p.atLowerWord() {
			first = p.withValue(first)
		}
		return first
	}
	choice := argument{name: first.name, kind: "oneof", inner: []argument{first}}
	for p.at("|") {
		p.words = p.words[1:]
		next := p.value(p.depth > 0)
		choice.name += "-or-" + next.name
		choice.inner = append(choice.inner, next)
	}
	return choice
}

// value reads a word, and if it announces a value that too.
func (p *syntaxParser) value(takesValue bool) argument {
	a := simpleArgument(p.words[0])
	p.words = p.words[1:]
	if takesValue && a.kind == "pure-token" && p.atLowerWord() {
		return p.withValue(a)
	}
	return a
}

func (p *syntaxParser) withValue(token argument) argument {
	a := simpleArgument(p.words[0])
	p.words = p.words[1:]
	a.token = token.token
	return a
}

func (p *syntaxParser) at(word string) bool { return len(p.words) > 0 && p.words[0] == word }

func (p *syntaxParser) atLowerWord() bool {
	if len(p.words) == 0 {
		return false
	}
	switch word := p.words[0]; word {
	case "[", "]", "|", "...":
		return false
	default:
		return word != strings.ToUpper(word)
	}
}

func simpleArgument(word string) argument {
	switch {
	case word == "key":
		return argument{name: word, kind: "key"}
	case word != "..." && word == strings.ToUpper(word):
		return argument{name: strings.ToLower(word), token: word, kind: "pure-token"}
	}
	return argument{name: word, kind: "string"}
}

// arguments writes them as COMMAND DOCS does.
func (s *Session) arguments(args []argument) {
	s.Array(len(args))
	for _, a := range args {
		flags := a.flags()
		s.Map(2 + int(oneIf(a.token != "")+oneIf(len(flags) > 0)+oneIf(a.kind == "key")+oneIf(len(a.inner) > 0)))
		s.Pair("name", a.name)
		s.Pair("type", a.kind)
		if a.kind == "key" {
			s.PairInt("key_spec_index", 0)
		}
		if a.token != "" {
			s.Pair("token", a.token)
		}
		if len(flags) > 0 {
			s.Bulk("flags")
			s.SimpleSet(flags)
		}
		if len(a.inner) > 0 {
			s.Bulk("arguments")
			s.arguments(a.inner)
		}
	}
}

func (a argument) flags() (flags []string) {
	if a.optional {
		flags = append(flags, "optional")
	}
	if a.multiple {
		flags = append(flags, "multiple")
	}
	return flags
}
