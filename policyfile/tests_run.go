package policyfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/commands"
)

// Failure is an expectation that was not met.
type Failure struct {
	Line           int
	Step           string // the command and its time
	Expected, Came string
}

// Result is the result of one test.
type Result struct {
	Test     *Test
	Failures []Failure // empty: the test passed
}

// OpenTests reads a file with tests, and the policies of the files that its field files lists. Relative names in the
// list refer to the directory of the file.
func OpenTests(path string) (*File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	if len(f.Tests) == 0 {
		return nil, fmt.Errorf("%w %s: the file has no tests; write them below 'tests:'", ErrFile, path)
	}
	from := map[string]string{}
	for i := range f.Policies {
		from[f.Policies[i].Name] = path
	}
	for _, name := range f.Include {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(path), name)
		}
		other, err := Open(name)
		if err != nil {
			return nil, fmt.Errorf("files of %s: %w", path, err)
		}
		for _, p := range other.Policies {
			if from[p.Name] != "" {
				return nil, fmt.Errorf("%w %s:%d: policy %s is in %s, too", ErrFile, name, p.Line, p.Name, from[p.Name])
			}
			from[p.Name] = name
			f.Policies = append(f.Policies, p)
		}
	}
	return f, nil
}

// RunTests runs the tests of the file. Each test has its own server, which has only the policies of the file. The time
// of the server stands still between the steps.
func (f *File) RunTests() ([]Result, error) {
	results := make([]Result, 0, len(f.Tests))
	for i := range f.Tests {
		failures, err := f.run(&f.Tests[i])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", f.Path, f.Tests[i].Line, err)
		}
		results = append(results, Result{&f.Tests[i], failures})
	}
	return results, nil
}

// errPolicyBounds: the policies of all files together exceed the bounds of a server.
var errPolicyBounds = errors.New("the policies exceed the bounds of a server")

func (f *File) run(t *Test) (failures []Failure, err error) {
	clock := newFrozen(t.Start)
	ops, _ := f.Changes(clock.Policies(), clock.Now().NowNs)
	out := make([]engine.Decision, len(ops))
	if err := clock.DecideAtomic(ops, out); err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Status != engine.OK {
			return nil, errPolicyBounds
		}
	}
	client, err := clock.client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for i := range t.Steps {
		s := &t.Steps[i]
		failures = append(failures, s.differ(s.send(client, clock, t.Start))...)
	}
	return failures, nil
}

// send sends the command of a step at the time of each repetition. It stops at an error.
func (s *TestStep) send(client *commands.Local, clock *frozen, start time.Time) *outcome {
	o := &outcome{times: s.Times}
	_, before, _ := clock.table.Events(engine.MaxUnits, 0)
	defer func() {
		var now engine.EventsPosition
		o.events, now, _ = clock.table.Events(before.Last, len(s.Events)+1)
		o.moreEvents = int(now.Last-before.Last) - len(o.events)
	}()
	for i := range s.Times {
		clock.goTo(start.Add(s.At + time.Duration(i)*s.Every))
		if o.reply, o.err = client.Do(s.Words...); o.err != nil {
			return o
		}
		if len(o.reply) > replyAllowed && o.reply[replyAllowed] != "0" {
			o.allowed++
		}
	}
	return o
}
