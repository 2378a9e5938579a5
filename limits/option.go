package limits

import (
	"strings"

	"github.com/weir-project/weir/engine"
)

// Option is a bit set of options, which may follow the fixed arguments of a decision or of a limit.
type Option uint32

// The options. optionWords has their words and values.
const (
	Cost Option = 1 << iota
	Partial
	MaxWait
	First
	Zone
	Holder
	Reason
	ID
	Priority
	Everywhere
	Attempts
	Extend
	From
	Sequence
	TTL
	Expire
	Split
	Longer
	Keep
)

// CheckOptions are the options that RL.CHECK had in version 0.1.0. No policy may have their names. A policy may have
// the word of a later option already, so that is not added here.
const CheckOptions = Cost | Partial | Priority | From | ID

var optionWords = [...]struct {
	word  string
	bit   Option
	value string // name of the value; empty: no value
}{
	{"COST", Cost, "n"}, {"ID", ID, "token"}, {"PARTIAL", Partial, ""},
	{"MAXWAIT", MaxWait, "duration"}, {"FIRST", First, ""}, {"TZ", Zone, "zone"},
	{"HOLDER", Holder, "id"}, {"REASON", Reason, "text"},
	{"PRIORITY", Priority, "high|normal"}, {"EVERYWHERE", Everywhere, ""},
	{"ATTEMPTS", Attempts, ""}, {"EXTEND", Extend, ""},
	{"FROM", From, "address"},
	{"SEQ", Sequence, "k"}, {"TTL", TTL, "duration"}, {"EXPIRE", Expire, "return|take"},
	{"SPLIT", Split, ""}, {"GT", Longer, ""}, {"KEEP", Keep, ""},
}

// Options parses options in any order, each at most once, and calls apply for each. It returns the options that were
// present.
func Options(args [][]byte, allowed Option, apply func(bit Option, value []byte) error) (seen Option, err error) {
	for len(args) > 0 {
		word, bit, used := "", Option(0), 1
		for i := range optionWords {
			if o := &optionWords[i]; Is(args[0], o.word) {
				if word, bit = o.word, o.bit; o.value != "" {
					used = 2
				}
				break
			}
		}
		switch {
		case bit&allowed == 0:
			return 0, unknownOption(args[0], allowed)
		case seen&bit != 0:
			return 0, Error(word + " is given twice")
		case used > len(args):
			return 0, Error(word + " needs a value: " + usageOf(bit))
		}
		seen |= bit
		if err := apply(bit, args[used-1]); err != nil {
			return 0, err
		}
		args = args[used:]
	}
	if seen&(Partial|MaxWait) == Partial|MaxWait {
		return 0, Error("PARTIAL and MAXWAIT exclude each other")
	}
	return seen, nil
}

// Apply applies FIRST, TZ, ATTEMPTS or EXTEND to a limit. The caller resolves the value of TZ.
func Apply(l *engine.Limit, bit Option) error {
	switch bit {
	case First:
		if l.Mode != engine.Aligned {
			return Error("FIRST goes with a window of a duration only, like 1m")
		}
		l.Mode = engine.FromFirst
	case Zone:
		if !l.Mode.Calendar() {
			return Error("TZ goes with a window of DAY, WEEK, MONTH or YEAR only")
		}
	case Attempts:
		l.Strikes |= engine.Attempts
	case Extend:
		l.Strikes |= engine.Extend
	}
	return nil
}

// usageOf returns the syntax of an option.
func usageOf(bit Option) string { return strings.Join(usages(bit), "") }

// usages returns the syntax of each option in a set.
func usages(of Option) (words []string) {
	for _, o := range optionWords {
		if o.bit&of != 0 {
			words = append(words, strings.TrimSpace(o.word+" "+o.value))
		}
	}
	return words
}

func unknownOption(got []byte, allowed Option) error {
	if allowed&Split != 0 && Is(got, "ELSE") || allowed&Expire != 0 && Is(got, "AND") {
		return Error(strings.ToUpper(string(got)) + " must come before the options")
	}
	return Bad("option", "must be "+strings.Join(usages(allowed), ", "), got)
}

// IsOption reports whether an argument is the word of an option in among.
func IsOption(b []byte, among Option) bool {
	for _, o := range optionWords {
		if o.bit&among != 0 && Is(b, o.word) {
			return true
		}
	}
	return false
}
