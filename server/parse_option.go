package server

import (
	"strings"

	"github.com/weir-project/weir/engine"
)

// option is one of the words that may follow the fixed arguments.
type option uint16

const (
	optCost option = 1 << iota
	optPartial
	optMaxWait
	optFirst
	optZone
	optHolder
	optReason
	optID
	optPriority
	optEverywhere
	optAttempts
	optExtend
	optFrom
)

// checkOptions are the options of RL.CHECK. No policy may have the name of one.
const checkOptions = optCost | optPartial | optPriority | optFrom | optID

var optionWords = [...]struct {
	word  string
	bit   option
	value string // what follows; empty: nothing
}{
	{"COST", optCost, "n"}, {"ID", optID, "token"}, {"PARTIAL", optPartial, ""},
	{"MAXWAIT", optMaxWait, "duration"}, {"FIRST", optFirst, ""}, {"TZ", optZone, "zone"},
	{"HOLDER", optHolder, "id"}, {"REASON", optReason, "text"},
	{"PRIORITY", optPriority, "high|normal"}, {"EVERYWHERE", optEverywhere, ""},
	{"ATTEMPTS", optAttempts, ""}, {"EXTEND", optExtend, ""},
	{"FROM", optFrom, "address"},
}

// options reads the options of op, in any order and each at most once. It
// returns which were there, and the value of TZ.
func options(op *engine.Op, args [][]byte, allowed option) (seen option, zone []byte, err error) {
	for len(args) > 0 {
		word, bit, takesValue := "", option(0), false
		for i := range optionWords {
			if o := &optionWords[i]; isWord(args[0], o.word) {
				word, bit, takesValue = o.word, o.bit, o.value != ""
				break
			}
		}
		switch {
		case bit&allowed == 0:
			return 0, nil, unknownOption(args[0], allowed)
		case seen&bit != 0:
			return 0, nil, replyError("ERR " + word + " is given twice")
		case takesValue && len(args) < 2:
			return 0, nil, replyError("ERR " + word + " needs a value: " + usageOf(bit))
		}
		seen |= bit
		if !takesValue {
			op.Partial = op.Partial || bit == optPartial
			args = args[1:]
			continue
		}
		if bit == optZone {
			zone = args[1]
		} else if err := applyOption(op, bit, args[1]); err != nil {
			return 0, nil, err
		}
		args = args[2:]
	}
	if seen&(optPartial|optMaxWait) == optPartial|optMaxWait {
		return 0, nil, replyError("ERR PARTIAL and MAXWAIT exclude each other")
	}
	return seen, zone, nil
}

func applyOption(op *engine.Op, bit option, value []byte) (err error) {
	switch bit {
	case optCost:
		op.Cost, err = unitsArg("COST", value, 0, engine.MaxUnits)
	case optMaxWait:
		op.WaitNs, err = durationArg("MAXWAIT", value)
	case optHolder:
		op.Text, err = value, checkText("HOLDER", value, engine.MaxHolderLen)
	case optReason:
		op.Text, err = value, checkText("REASON", value, engine.MaxReasonLen)
	case optPriority:
		if op.High = isWord(value, "HIGH"); !op.High && !isWord(value, "NORMAL") {
			err = badArgument("PRIORITY", "must be high or normal", value)
		}
	case optFrom:
		op.From, err = addressArg("FROM", value)
	case optID:
		op.ID, err = value, checkText("ID", value, engine.MaxIDLen)
	}
	return err
}

// usageOf is an option as it is written.
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
	return badArgument("option", "must be "+strings.Join(words, ", "), got)
}

// isOption says whether an argument is the word of one of some options.
func isOption(b []byte, among option) bool {
	for _, o := range optionWords {
		if o.bit&among != 0 && isWord(b, o.word) {
			return true
		}
	}
	return false
}
