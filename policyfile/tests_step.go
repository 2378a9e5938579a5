package policyfile

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/engine"
)

// readStep reads a step. A step without the field at begins at the time of the last repetition of the previous step.
func (t *Test) readStep(n *yaml.Node) error {
	s := TestStep{Line: n.Line, Times: 1, At: t.end()}
	before := s.At
	readers := map[string]func(*yaml.Node) error{
		"at":     func(n *yaml.Node) (err error) { s.At, err = duration(n, "at"); return err },
		"every":  func(n *yaml.Node) (err error) { s.Every, err = duration(n, "every"); return err },
		"times":  func(n *yaml.Node) (err error) { s.Times, err = number(n, "times", 1, maxTimes); return err },
		"events": s.readEvents,
	}
	for _, command := range testCommands {
		readers[command] = func(n *yaml.Node) error {
			if len(s.Words) > 0 {
				return at(n, "a step must have one command, and this is the second")
			}
			words, err := commandWords(n)
			s.Words = append([]string{"RL." + strings.ToUpper(command)}, words...)
			return err
		}
	}
	s.readFacts(readers)
	err := fields(n, "a step", readers)
	switch {
	case err != nil:
		return err
	case len(s.Words) == 0:
		return at(n, "a step needs a command, one of %s; like 'check: login alice'", strings.Join(testCommands, ", "))
	case s.At < before:
		return at(n, "time does not go back: this step is at %v, but the step before it ends at %v", s.At, before)
	case s.Every > 0 && s.Times == 1:
		return at(n, "every goes with times, like 'times: 10, every: 1s'")
	case s.Every > 0 && int64(s.Times-1) > engine.MaxWindowNs/int64(s.Every):
		return at(n, "times and every make a step of more than 366 days")
	case t.Start.Add(s.end()).UTC().Year() > lastYear:
		return at(n, "this step is after the year %d", lastYear)
	}
	if err := s.checkFacts(n); err != nil {
		return err
	}
	t.Steps = append(t.Steps, s)
	return nil
}

// end returns the time of the last repetition.
func (s *TestStep) end() time.Duration { return s.At + time.Duration(s.Times-1)*s.Every }

func (t *Test) end() time.Duration {
	if len(t.Steps) == 0 {
		return 0
	}
	return t.Steps[len(t.Steps)-1].end()
}

// commandWords reads the arguments of a command: a text separated by blanks, or a list if an argument contains blanks.
func commandWords(n *yaml.Node) ([]string, error) {
	if n.Kind == yaml.SequenceNode {
		return texts(n, "a command", maxWords)
	}
	text, err := scalar(n)
	return strings.Fields(text), err
}

// maxWords bounds the arguments of a command.
const maxWords = 1000

func duration(n *yaml.Node, what string) (time.Duration, error) {
	text, err := scalar(n)
	if err != nil {
		return 0, err
	}
	ns, err := engine.ParseDuration([]byte(text))
	if err != nil {
		return 0, at(n, "%s must be like 500ms, 10s or 2h, at most 366 days; got %q", what, text)
	}
	return time.Duration(ns), nil
}

func number(n *yaml.Node, what string, least, most int) (int, error) {
	text, err := scalar(n)
	if err != nil {
		return 0, err
	}
	i, err := strconv.Atoi(text)
	if err != nil || i < least || i > most {
		return 0, at(n, "%s must be a whole number from %d to %d; got %q", what, least, most, text)
	}
	return i, nil
}

func (s *TestStep) String() string {
	text := strings.ToLower(strings.TrimPrefix(s.Words[0], "RL.")) + " " + strings.Join(s.Words[1:], " ")
	return fmt.Sprintf("%s at %s", text, engine.FormatDuration(int64(s.At)))
}
