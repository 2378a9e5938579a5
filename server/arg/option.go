package arg

import (
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
)

// option is a bit set of options, which may follow the fixed arguments.
type option uint16

// The options. optionWords has their words and values.
const (
	Cost option = 1 << iota
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
)

// CheckOptions are the options of RL.CHECK. No policy may have the name of an option.
const CheckOptions = Cost | Partial | Priority | From | ID

var optionWords = [...]struct {
	word  string
	bit   option
	value string // name of the value; empty: no value
}{
	{"COST", Cost, "n"}, {"ID", ID, "token"}, {"PARTIAL", Partial, ""},
	{"MAXWAIT", MaxWait, "duration"}, {"FIRST", First, ""}, {"TZ", Zone, "zone"},
	{"HOLDER", Holder, "id"}, {"REASON", Reason, "text"},
	{"PRIORITY", Priority, "high|normal"}, {"EVERYWHERE", Everywhere, ""},
	{"ATTEMPTS", Attempts, ""}, {"EXTEND", Extend, ""},
	{"FROM", From, "address"},
}

// Options parses the options of op, in any order and each at most once. It returns the options that were present, and
// the value of TZ.
func Options(op *engine.Op, args [][]byte, allowed option) (seen option, zone []byte, err error) {
	for len(args) > 0 {
		word, bit, takesValue := "", option(0), false
		for i := range optionWords {
			if o := &optionWords[i]; Is(args[0], o.word) {
				word, bit, takesValue = o.word, o.bit, o.value != ""
				break
			}
		}
		switch {
		case bit&allowed == 0:
			return 0, nil, unknownOption(args[0], allowed)
		case seen&bit != 0:
			return 0, nil, resp.Error("ERR " + word + " is given twice")
		case takesValue && len(args) < 2:
			return 0, nil, resp.Error("ERR " + word + " needs a value: " + usageOf(bit))
		}
		seen |= bit
		if !takesValue {
			op.Partial = op.Partial || bit == Partial
			args = args[1:]
			continue
		}
		if bit == Zone {
			zone = args[1]
		} else if err := applyOption(op, bit, args[1]); err != nil {
			return 0, nil, err
		}
		args = args[2:]
	}
	if seen&(Partial|MaxWait) == Partial|MaxWait {
		return 0, nil, resp.Error("ERR PARTIAL and MAXWAIT exclude each other")
	}
	return seen, zone, nil
}

func applyOption(op *engine.Op, bit option, value []byte) (err error) {
	switch bit {
	case Cost:
		op.Cost, err = Units("COST", value, 0, engine.MaxUnits)
	case MaxWait:
		op.WaitNs, err = Duration("MAXWAIT", value)
	case Holder:
		op.Text, err = value, CheckText("HOLDER", value, engine.MaxHolderLen)
	case Reason:
		op.Text, err = value, CheckText("REASON", value, engine.MaxReasonLen)
	case Priority:
		if op.High = Is(value, "HIGH"); !op.High && !Is(value, "NORMAL") {
			err = Bad("PRIORITY", "must be high or normal", value)
		}
	case From:
		op.From, err = Address("FROM", value)
	case ID:
		op.ID, err = value, CheckText("ID", value, engine.MaxIDLen)
	}
	return err
}

// usageOf returns the syntax of an option.
func usageOf(bit option) string {
	for _, o := range optionWords {
		if o.bit == bit {
			return strings.TrimSpace(o.word + " " + o.value)
		}
	}
	return ""
}

func unknownOption(got []byte, allowed option) error {
	var words []string
	for _, o := range optionWords {
		if o.bit&allowed != 0 {
			words = append(words, strings.TrimSpace(o.word+" "+o.value))
		}
	}
	return Bad("option", "must be "+strings.Join(words, ", "), got)
}

// IsOption reports whether an argument is the word of an option in among.
func IsOption(b []byte, among option) bool {
	for _, o := range optionWords {
		if o.bit&among != 0 && Is(b, o.word) {
			return true
		}
	}
	return false
}
