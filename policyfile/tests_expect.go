package policyfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/engine"
)

// outcome is the result of a step: the number of allowed requests, the last reply, and the events that were written.
type outcome struct {
	times, allowed int
	reply          []string
	err            error
	events         []engine.Event // at most one more than the step expects
	moreEvents     int            // how many others there are
}

// Indexes of the integers in the reply to a decision, and of the text after the integers.
const (
	replyAllowed = iota
	replyRemaining
	replyRetry
	replyReset
	replyLimit
	replyText
)

// never is the value of retry_after for a request that no wait would make fit, and of reset_after for a limiter that
// does not become idle by itself.
const never = "never"

// fact is a kind of expectation: a property of the outcome of a step.
type fact struct {
	// read validates a value of the file, and converts it to the form in which got returns values.
	read     func(value string) (normal string, ok bool)
	accepted string                  // the accepted values, for error messages
	got      func(o *outcome) string // the value in an outcome
	anywhere bool                    // valid for the replies to all commands, not only to decisions
}

var facts = map[string]fact{
	"expect":      {read: isVerdict, accepted: "allowed or denied", got: verdictOf},
	"allowed":     {read: isCount, accepted: "how many of the times are allowed", got: allowedOf},
	"granted":     {read: isCount, accepted: "how many units a PARTIAL check gets", got: element(replyAllowed)},
	"remaining":   {read: isCount, accepted: "a whole number", got: element(replyRemaining)},
	"retry_after": {read: isWait, accepted: "a duration like 50s, or never", got: waitOf(replyRetry)},
	"reset_after": {read: isWait, accepted: "a duration like 50s, or never", got: waitOf(replyReset)},
	"limit":       {read: isCount, accepted: "a whole number", got: element(replyLimit)},
	"by":          {read: isAny, accepted: "the policy that binds", got: element(replyText)},
	"answer":      {read: isAny, accepted: "the whole reply in one line", got: replyOf, anywhere: true},
	"error":       {read: isAny, accepted: "how the error begins", got: errorOf, anywhere: true},
}

func isVerdict(value string) (string, bool) { return value, value == "allowed" || value == "denied" }

func isAny(value string) (string, bool) { return value, value != "" }

func isCount(value string) (string, bool) {
	n, err := strconv.ParseUint(value, 10, 63)
	return strconv.FormatUint(n, 10), err == nil
}

// isWait reads a duration and rounds it up to milliseconds, as the server does.
func isWait(value string) (string, bool) {
	if value == never {
		return never, true
	}
	ns, err := engine.ParseDuration([]byte(value))
	return engine.FormatDuration((ns + 1e6 - 1) / 1e6 * 1e6), err == nil
}

func allowedOf(o *outcome) string { return strconv.Itoa(o.allowed) }

func replyOf(o *outcome) string { return strings.Join(o.reply, " ") }

func verdictOf(o *outcome) string {
	switch o.allowed {
	case o.times:
		return "allowed"
	case 0:
		return "denied"
	}
	return fmt.Sprintf("%d of %d allowed", o.allowed, o.times)
}

func element(at int) func(*outcome) string {
	return func(o *outcome) string {
		if at >= len(o.reply) {
			return ""
		}
		return o.reply[at]
	}
}

func waitOf(at int) func(*outcome) string {
	return func(o *outcome) string {
		ms, err := strconv.ParseInt(element(at)(o), 10, 64)
		switch {
		case err != nil:
			return ""
		case ms < 0:
			return never
		}
		return engine.FormatDuration(ms * 1e6)
	}
}

func errorOf(o *outcome) string {
	if o.err == nil {
		return "no error"
	}
	return o.err.Error()
}

// readFacts adds the readers for the expectations of a step.
func (s *TestStep) readFacts(readers map[string]func(*yaml.Node) error) {
	for name, f := range facts {
		readers[name] = func(n *yaml.Node) error {
			value, err := scalar(n)
			if err != nil {
				return err
			}
			normal, ok := f.read(value)
			if !ok {
				return at(n, "%s must be %s; got %q", name, f.accepted, value)
			}
			s.Expect = append(s.Expect, expectation{n.Line, name, normal})
			return nil
		}
	}
}

// checkFacts rejects expectations that no reply to the command can meet.
func (s *TestStep) checkFacts(n *yaml.Node) error {
	failing := slices.ContainsFunc(s.Expect, func(e expectation) bool { return e.name == "error" })
	if failing && s.Events != nil {
		return at(n, "a command that answers an error writes no events")
	}
	for _, e := range s.Expect {
		switch {
		case failing && e.name != "error":
			return at(n, "a command that answers an error has no %s", e.name)
		case !s.decides() && !facts[e.name].anywhere:
			return at(n, "only check, reserve and extend answer %s; of others say the whole reply, like 'answer: 1'",
				e.name)
		}
	}
	return nil
}

// decides reports whether the command returns the integers of a decision.
func (s *TestStep) decides() bool {
	return slices.Contains([]string{"RL.CHECK", "RL.RESERVE", "RL.EXTEND"}, s.Words[0])
}

// differ returns a Failure for each expectation that the outcome does not meet, in the order of the file. An error that
// the step does not expect is a Failure as well.
func (s *TestStep) differ(o *outcome) (all []Failure) {
	failing := false
	for _, e := range s.Expect {
		got := facts[e.name].got(o)
		if e.name == "error" {
			failing = true
			if strings.HasPrefix(got, e.value) {
				continue
			}
		} else if o.err != nil || got == e.value {
			continue
		}
		all = append(all, Failure{e.line, s.String(), e.name + " " + e.value, got})
	}
	if o.err != nil && !failing {
		all = append(all, Failure{s.Line, s.String(), "an answer", "the error " + o.err.Error()})
	}
	if o.err == nil && s.Events != nil {
		all = append(all, s.differEvents(o)...)
	}
	return all
}
