package syntax

import (
	"slices"
	"strings"
)

// Argument is one argument of a command as COMMAND DOCS describes it.
type Argument struct {
	Name     string
	Token    string // the word before the value; for a pure token the whole argument
	Kind     string // key, string, pure-token, oneof, block
	Optional bool
	Multiple bool
	Inner    []Argument // of oneof and block
}

// Parse parses a syntax line of the command table: words, WORDS, [optional], a|b and [again ...]. The line is thus the
// only definition of the arguments.
func Parse(syntax string) []Argument {
	spread := strings.NewReplacer("[", " [ ", "]", " ] ", "|", " | ").Replace(syntax)
	p := parser{words: strings.Fields(spread)}
	return p.sequence()
}

type parser struct {
	words []string
	depth int // of brackets
}

func (p *parser) sequence() (args []Argument) {
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

// optional reads an argument in brackets. A bracket that ends in dots either repeats the arguments before it, which
// become multiple, or may itself be repeated.
func (p *parser) optional(before []Argument) []Argument {
	inner := p.sequence()
	last := len(inner) - 1
	again := last > 0 && inner[last].Name == "..."
	if again {
		inner = inner[:last]
	}
	if start := len(before) - len(inner); again && start >= 0 && sameNames(before[start:], inner) {
		repeated := asOne(before[start:])
		repeated.Multiple = true
		return append(before[:start:start], repeated)
	}
	a := asOne(inner)
	a.Optional, a.Multiple = true, again
	return append(before, a)
}

func sameNames(a, b []Argument) bool {
	return slices.EqualFunc(a, b, func(x, y Argument) bool { return x.Name == y.Name })
}

// asOne combines several arguments into a block.
func asOne(args []Argument) Argument {
	if len(args) == 1 {
		return args[0]
	}
	return Argument{Name: args[0].Name + "-block", Kind: "block", Inner: args}
}

// one reads a word, a WORD with its value, or alternatives. A WORD among alternatives outside brackets has no value.
func (p *parser) one() Argument {
	first := p.value(p.depth > 0)
	if !p.at("|") {
		if first.Kind == "pure-token" && first.Token != "" && p.atLowerWord() {
			first = p.withValue(first)
		}
		return first
	}
	choice := Argument{Name: first.Name, Kind: "oneof", Inner: []Argument{first}}
	for p.at("|") {
		p.words = p.words[1:]
		next := p.value(p.depth > 0)
		choice.Name += "-or-" + next.Name
		choice.Inner = append(choice.Inner, next)
	}
	return choice
}

// value reads a word, and its value if the word announces one.
func (p *parser) value(takesValue bool) Argument {
	a := simpleArgument(p.words[0])
	p.words = p.words[1:]
	if takesValue && a.Kind == "pure-token" && p.atLowerWord() {
		return p.withValue(a)
	}
	return a
}

func (p *parser) withValue(token Argument) Argument {
	a := simpleArgument(p.words[0])
	p.words = p.words[1:]
	a.Token = token.Token
	return a
}

func (p *parser) at(word string) bool { return len(p.words) > 0 && p.words[0] == word }

func (p *parser) atLowerWord() bool {
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

func simpleArgument(word string) Argument {
	switch {
	case word == "key":
		return Argument{Name: word, Kind: "key"}
	case word != "..." && word == strings.ToUpper(word):
		return Argument{Name: strings.ToLower(word), Token: word, Kind: "pure-token"}
	}
	return Argument{Name: word, Kind: "string"}
}

// Flags returns the flags of the argument in COMMAND DOCS.
func (a Argument) Flags() (flags []string) {
	if a.Optional {
		flags = append(flags, "optional")
	}
	if a.Multiple {
		flags = append(flags, "multiple")
	}
	return flags
}
