package main

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
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/policyfile"
)

// policyCmd works on policy files, and on the policies of a running server.
type policyCmd struct {
	Test   policyTestCmd   `cmd:"" help:"Run the tests of policy files in simulated time, without a server. Exit code 1 when one fails, 2 when a file is bad."`
	Diff   policyDiffCmd   `cmd:"" help:"Show the differences between a file and a server. Exit code 0: no difference, 1: differences, 2: an error."`
	Apply  policyApplyCmd  `cmd:"" help:"Set the policies of a file, in one atomic step. Policies that it does not name stay, unless --prune is given."`
	Export policyExportCmd `cmd:"" help:"Write the policies that are in force as a file."`
}

type policyApplyCmd struct {
	remote
	File     string `short:"f" required:"" placeholder:"FILE" help:"The policy file."`
	Prune    bool   `env:"-" help:"Also remove policies of the file's owner that are not in the file, and permanent overrides."`
	DryRun   bool   `env:"-" help:"Only show what would change."`
	TakeOver bool   `env:"-" help:"Take over the policies of the file that belong to another owner."`
}

type policyDiffCmd struct {
	remote
	File string `short:"f" required:"" placeholder:"FILE" help:"The policy file."`
	JSON bool   `env:"-" name:"json" help:"Print JSON: a list of changes, each with before and after."`
}

type policyExportCmd struct {
	remote
	Owner string `env:"-" mayempty:"" placeholder:"OWNER" default:"*" help:"Only the policies of this owner; --owner= for policies without an owner. Unless given, all policies must have the same owner."`
	JSON  bool   `env:"-" name:"json" help:"Print JSON instead of YAML, in the server's terms."`
}

// anyOwner is the owner of a file that is to hold all policies.
const anyOwner = "*"

// errDiffers is how diff says with its exit code that there is a difference.
var errDiffers error = &cmdline.Outcome{Text: "the policies differ from the file", Code: 1}

func (a *policyApplyCmd) Run() error  { return a.apply(os.Stdout) }
func (d *policyDiffCmd) Run() error   { return cmdline.AsTrouble(d.diff(os.Stdout)) }
func (e *policyExportCmd) Run() error { return e.export(os.Stdout) }

const (
	// maxApplyTries bounds how often apply begins anew because others change policies, too.
	maxApplyTries = 5
	// unheardFor is how long apply waits for a cluster that was just restarted: its nodes hear
	// within a second or two what the others can read.
	unheardFor = 5 * time.Second
)

// apply sends what differs, and says what it was.
func (a *policyApplyCmd) apply(w io.Writer) error {
	file, err := policyfile.Open(a.File)
	if err != nil {
		return err
	}
	for start, tries := time.Now(), 0; tries < maxApplyTries; {
		switch err = a.try(w, file); {
		case errors.Is(err, errPolicyChanged):
			tries++
		case err != nil && strings.Contains(err.Error(), limiter.ErrOldMember.Error()) && time.Since(start) < unheardFor:
			time.Sleep(policyRetryEvery)
		default:
			return err
		}
	}
	return fmt.Errorf("the policies keep changing, nothing was changed: run it again when nobody else applies: %w", err)
}

func (a *policyApplyCmd) try(w io.Writer, file *policyfile.File) error {
	return a.with(func(conn redis.Conn) error {
		s := &policyServer{conn}
		now, err := s.policies()
		if err != nil {
			return err
		}
		if err := file.Conflicts(now); err != nil && !a.TakeOver {
			return fmt.Errorf("%w\nnothing was changed: name the policy otherwise, or take it over with --take-over", err)
		}
		plan := file.Compare(now)
		what := "to change, nothing was changed (--dry-run)"
		if !a.DryRun {
			if err := s.change(plan.Commands(a.Prune)); err != nil {
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

// mentionExtra names what stays because --prune is not given.
func (a *policyApplyCmd) mentionExtra(w io.Writer, extra []policyfile.Step) error {
	for _, step := range extra {
		fmt.Fprintf(w, "  %s\n", plainText(step.Before))
	}
	_, err := fmt.Fprintf(w, "%d not in the file: --prune removes them\n", len(extra))
	return err
}

func (d *policyDiffCmd) diff(w io.Writer) error {
	file, err := policyfile.Open(d.File)
	if err != nil {
		return err
	}
	return d.with(func(conn redis.Conn) error {
		now, err := (&policyServer{conn}).policies()
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
			write = func() error { return writeJSON(w, stepsJSON(steps)) }
		}
		if err := write(); err != nil || len(steps) == 0 {
			return err
		}
		return errDiffers
	})
}

func (e *policyExportCmd) export(w io.Writer) error {
	return e.with(func(conn redis.Conn) error {
		now, err := (&policyServer{conn}).policies()
		if err != nil {
			return err
		}
		if e.Owner != anyOwner {
			now = slices.DeleteFunc(now, func(t policyfile.Terms) bool { return t.Owner != e.Owner })
		}
		if e.JSON {
			return writeJSON(w, now)
		}
		owner, err := oneOwner(now)
		if err != nil {
			return err
		}
		return policyfile.Write(w, owner, now)
	})
}
