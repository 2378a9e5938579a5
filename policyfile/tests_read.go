package policyfile

import (
	"time"

	"go.yaml.in/yaml/v3"
)

// The bounds of the tests of a file keep a run to a few seconds. maxTimes bounds the repetitions of one step.
const (
	maxTests     = 1000
	maxTestSteps = 1000
	maxTimes     = 100_000
	maxCommands  = 2_000_000 // sent by all tests of a file
)

// defaultStart is a Monday, and the first second of a minute, hour, day, week, month and year in UTC. A window of any
// length therefore begins at it.
var defaultStart = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// firstYear and lastYear bound the clock changes that a policy stores for its time zone.
const firstYear, lastYear = 2020, 2099

// Test is one element of the field tests: commands at given times, and the expected replies.
type Test struct {
	Name  string
	Line  int
	Start time.Time
	Steps []TestStep
}

// TestStep is a command of a test, the number of its repetitions, and the expected reply.
type TestStep struct {
	Line   int
	At     time.Duration // time since Test.Start
	Words  []string      // the command and its arguments
	Times  int
	Every  time.Duration // interval between repetitions
	Expect []expectation
	Events []wantedEvent // that all repetitions write; nil: any

	eventsLine int
}

// expectation is an expected value: the name of a fact, and its value in normal form.
type expectation struct {
	line        int
	name, value string
}

// testCommands are the commands that a step may send. The name of a field is the name of a command without "RL.".
var testCommands = []string{"check", "reserve", "extend", "commit", "cancel", "refund", "reset", "forgive",
	"block", "unblock", "policy"}

func (f *File) readTests(list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode || len(list.Content) > maxTests {
		return at(list, "tests is a list of at most %d, like '- name: the sixth login of a minute is denied'", maxTests)
	}
	commands := 0
	for _, n := range list.Content {
		t := Test{Line: n.Line, Start: defaultStart}
		var steps *yaml.Node
		err := fields(n, "a test", map[string]func(*yaml.Node) error{
			"name":  func(n *yaml.Node) (err error) { t.Name, err = scalar(n); return err },
			"start": func(n *yaml.Node) (err error) { t.Start, err = startOf(n); return err },
			"steps": func(n *yaml.Node) error { steps = n; return nil },
		})
		switch {
		case err != nil:
			return err
		case t.Name == "":
			return at(n, "a test needs a name, like 'name: the sixth login of a minute is denied'")
		case steps == nil || steps.Kind != yaml.SequenceNode || len(steps.Content) == 0 ||
			len(steps.Content) > maxTestSteps:
			return at(n, "test %q: it needs steps, a list of 1 to %d, like '- {at: 0s, check: login alice, "+
				"expect: allowed}'",
				t.Name, maxTestSteps)
		}
		for _, n := range steps.Content {
			if err := t.readStep(n); err != nil {
				return err
			}
			if commands += t.Steps[len(t.Steps)-1].Times; commands > maxCommands {
				return at(n, "the tests of a file send at most %d commands", maxCommands)
			}
		}
		f.Tests = append(f.Tests, t)
	}
	return nil
}

func startOf(n *yaml.Node) (time.Time, error) {
	text, err := scalar(n)
	if err != nil {
		return time.Time{}, err
	}
	start, err := time.Parse(time.RFC3339, text)
	if err != nil || start.UTC().Year() < firstYear || start.UTC().Year() > lastYear {
		return start, at(n, "start must be like 2024-01-01T00:00:00Z, in the years %d to %d; got %q",
			firstYear, lastYear, text)
	}
	return start, nil
}
