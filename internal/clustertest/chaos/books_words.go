package chaos

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

// bookArgs returns an operation of package ledger as a command.
func bookArgs(op ledger.Op) []string {
	units := strconv.FormatInt(op.Units, 10)
	switch op.Verb {
	case ledger.Check:
		return append(pairArgs([]string{"RL.CHECK"}, op.Pairs), "COST", units)
	case ledger.Reserve:
		args := []string{"RL.RESERVE", op.Pairs[0].Policy, op.Pairs[0].Key, units,
			strconv.FormatInt(time.Duration(op.TTLNs).Milliseconds(), 10) + "ms"}
		if len(op.Pairs) > 1 {
			args = pairArgs(append(args, "AND"), op.Pairs[1:])
		}
		return append(args, "ID", op.ID)
	case ledger.Commit:
		return []string{"RL.COMMIT", op.ID, units}
	case ledger.Cancel:
		return []string{"RL.CANCEL", op.ID}
	}
	return policyArgs(op)
}

func pairArgs(args []string, pairs []ledger.Pair) []string {
	for _, p := range pairs {
		args = append(args, p.Policy, p.Key)
	}
	return args
}

func policyArgs(op ledger.Op) []string {
	if len(op.Maxima) == 0 {
		return []string{"RL.POLICY", "DEL", op.Pairs[0].Policy}
	}
	args := []string{"RL.POLICY", "SET", op.Pairs[0].Policy}
	for _, most := range op.Maxima {
		args = append(args, "LIMIT", "FIXED", "FOREVER", strconv.FormatInt(most, 10))
	}
	if op.Reset {
		return append(args, "RESET")
	}
	return append(args, "KEEP", "usage")
}

// bookErrors are the prefixes of error replies that are answers, because they describe the state.
var bookErrors = map[string]ledger.Status{
	"ERR there is no policy": ledger.NoPolicy,
	"NOHOLD":                 ledger.NoHold,
	"ERR the hold is settled with another actual": ledger.OtherTerms,
}

func bookError(reply ErrorReply) (status ledger.Status, ok bool) {
	for begins, status := range bookErrors {
		if strings.HasPrefix(string(reply), begins) {
			return status, true
		}
	}
	return ledger.OK, false
}

// bookAnswer parses a reply. It returns false if the command has no such reply.
func bookAnswer(op ledger.Op, reply any) (a ledger.Answer, ok bool) {
	switch reply := reply.(type) {
	case ErrorReply:
		a.Status, ok = bookError(reply)
		return a, ok
	case int64:
		if op.Verb == ledger.Cancel || op.Verb == ledger.Set && len(op.Maxima) == 0 {
			return ledger.Answer{Allowed: reply}, true
		}
		return ledger.Answer{Left: reply}, op.Verb == ledger.Commit || op.Verb == ledger.Set
	case []any:
		return decisionAnswer(op, reply)
	}
	return a, false
}

// decisionAnswer parses the five integers and the text after them: the name of the policy for a check, the id for a
// hold.
func decisionAnswer(op ledger.Op, reply []any) (a ledger.Answer, ok bool) {
	if len(reply) != 6 || op.Verb != ledger.Check && op.Verb != ledger.Reserve {
		return a, false
	}
	figures := Answer{Reply: reply[:5]}
	five := figures.ints()
	if len(five) != 5 {
		return a, false
	}
	a = ledger.Answer{Allowed: five[0], Left: five[1], Limit: five[4]}
	if op.Verb == ledger.Check {
		a.Policy, ok = reply[5].(string)
		return a, ok
	}
	id, made := reply[5].(string)
	return a, made == (a.Allowed == 1) && (!made || id == op.ID)
}
