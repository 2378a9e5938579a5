// Package policy tests policy files, compares them with a running server, and applies them to it.
package policy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/policyfile"
)

// Command tests policy files, and reads and changes the policies of a running server.
type Command struct {
	Test   TestCmd   `cmd:"" help:"Run the tests of policy files in simulated time, without a server. Exit code 1 when one fails, 2 when a file is bad."`
	Diff   DiffCmd   `cmd:"" help:"Show the differences between a file and a server. Exit code 0: no difference, 1: differences, 2: an error."`
	Apply  ApplyCmd  `cmd:"" help:"Set the policies of a file, in one atomic step. Policies that it does not name stay, unless --prune is given."`
	Export ExportCmd `cmd:"" help:"Write the policies that are in force as a file."`
}

// ApplyCmd sets the policies of a file on a server.
type ApplyCmd struct {
	remote.Server
	File     string `short:"f" required:"" placeholder:"FILE" help:"The policy file."`
	Prune    bool   `env:"-" help:"Also remove policies of the file's owner that are not in the file, and permanent overrides."`
	DryRun   bool   `env:"-" help:"Only show what would change."`
	TakeOver bool   `env:"-" help:"Take over the policies of the file that belong to another owner."`
}

// DiffCmd compares a file with a server.
type DiffCmd struct {
	remote.Server
	File string `short:"f" required:"" placeholder:"FILE" help:"The policy file."`
	JSON bool   `env:"-" name:"json" help:"Print JSON: a list of changes, each with before and after."`
}

// ExportCmd writes the policies of a server as a file.
type ExportCmd struct {
	remote.Server
	Owner string `env:"-" mayempty:"" placeholder:"OWNER" default:"*" help:"Only the policies of this owner; --owner= for policies without an owner. Unless given, all policies must have the same owner."`
	JSON  bool   `env:"-" name:"json" help:"Print JSON instead of YAML, in the server's terms."`
}

// AnyOwner is the value of --owner for the policies of all owners.
const AnyOwner = "*"

// ErrDiffers makes diff exit with the code for a difference.
var ErrDiffers error = &cmdline.Outcome{Text: "the policies differ from the file", Code: 1}

func (a *ApplyCmd) Run() error  { return a.Apply(os.Stdout) }
func (d *DiffCmd) Run() error   { return cmdline.AsTrouble(d.Diff(os.Stdout)) }
func (e *ExportCmd) Run() error { return e.Export(os.Stdout) }

const (
	// retryEvery is the interval at which apply retries while a cluster has no leader.
	retryEvery = 500 * time.Millisecond
	// MaxTries bounds how often apply starts again because another client changed policies too.
	MaxTries = 5
	// unheardFor is how long apply waits for a cluster that was just restarted. Its nodes learn within a second or two
	// which forms of the log the others can read.
	unheardFor = 5 * time.Second
)

// Apply sends the differences, and reports them.
func (a *ApplyCmd) Apply(w io.Writer) error {
	file, err := policyfile.Open(a.File)
	if err != nil {
		return err
	}
	for start, tries := time.Now(), 0; tries < MaxTries; {
		switch err = a.try(w, file); {
		case errors.Is(err, ErrChanged):
			tries++
		case err != nil && strings.Contains(err.Error(), limiter.ErrOldMember.Error()) &&
			time.Since(start) < unheardFor:
			time.Sleep(retryEvery)
		default:
			return err
		}
	}
	return fmt.Errorf("another program changes the policies, so nothing was changed: run the command again later: "+
		"%w", err)
}

func (a *ApplyCmd) try(w io.Writer, file *policyfile.File) error {
	return a.With(func(conn redis.Conn) error {
		s := &Server{Conn: conn}
		now, err := s.Policies()
		if err != nil {
			return err
		}
		if err := file.Conflicts(now); err != nil && !a.TakeOver {
			return fmt.Errorf("%w\nnothing was changed: rename the policy, or take it over with --take-over",
				err)
		}
		plan := file.Compare(now)
		what := "to change, nothing was changed (--dry-run)"
		if !a.DryRun {
			if err := s.Change(plan.Commands(a.Prune)); err != nil {
				return err
			}
			what = "changed"
		}
		if a.Prune {
			return report(w, slices.Concat(plan.Extra, plan.Steps), what)
		}
		if err := report(w, plan.Steps, what); err != nil || len(plan.Extra) == 0 {
			return err
		}
		return a.mentionExtra(w, plan.Extra)
	})
}

// mentionExtra lists the policies that stay because --prune is not given.
func (a *ApplyCmd) mentionExtra(w io.Writer, extra []policyfile.Step) error {
	for _, step := range extra {
		fmt.Fprintf(w, "  %s\n", terminal.PlainText(step.Before))
	}
	_, err := fmt.Fprintf(w, "%d not in the file: --prune removes them\n", len(extra))
	return err
}

// Diff writes the differences. It returns ErrDiffers if it found any.
func (d *DiffCmd) Diff(w io.Writer) error {
	file, err := policyfile.Open(d.File)
	if err != nil {
		return err
	}
	return d.With(func(conn redis.Conn) error {
		now, err := (&Server{Conn: conn}).Policies()
		if err != nil {
			return err
		}
		if err := file.Conflicts(now); err != nil {
			return err
		}
		plan := file.Compare(now)
		steps := slices.Concat(plan.Extra, plan.Steps)
		write := func() error { return reportDiff(w, plan) }
		if d.JSON {
			write = func() error { return terminal.WriteJSON(w, stepsJSON(steps)) }
		}
		if err := write(); err != nil || len(steps) == 0 {
			return err
		}
		return ErrDiffers
	})
}

// Export writes the file.
func (e *ExportCmd) Export(w io.Writer) error {
	return e.With(func(conn redis.Conn) error {
		now, err := (&Server{Conn: conn}).Policies()
		if err != nil {
			return err
		}
		if e.Owner != AnyOwner {
			now = slices.DeleteFunc(now, func(t policyfile.Terms) bool { return t.Owner != e.Owner })
		}
		if e.JSON {
			return terminal.WriteJSON(w, now)
		}
		owner, err := oneOwner(now)
		if err != nil {
			return err
		}
		return policyfile.Write(w, owner, now)
	})
}
