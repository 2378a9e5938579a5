package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/weir-project/weir/policyfile"
)

// policyCmd works on the policies of a running server.
type policyCmd struct {
	Addr         string `address:"" default:"127.0.0.1:6380" help:"A server, as clients reach it."`
	PasswordFile string `placeholder:"FILE" help:"File that holds its password."`
	dialFlags

	Apply  policyApplyCmd  `cmd:"" help:"Make policies as a file says, all of them in one step. Policies that it does not name stay."`
	Diff   policyDiffCmd   `cmd:"" help:"Show what apply would do. Exit code 1 when there is a difference."`
	Export policyExportCmd `cmd:"" help:"Write the policies that are in force as a file."`
}

type policyApplyCmd struct {
	File string `short:"f" required:"" placeholder:"FILE" help:"The policy file."`
}

type policyDiffCmd struct {
	File string `short:"f" required:"" placeholder:"FILE" help:"The policy file."`
	JSON bool   `env:"-" name:"json" help:"Print JSON: a list of changes, each what is so before and after."`
}

type policyExportCmd struct {
	JSON bool `env:"-" name:"json" help:"Print JSON instead of YAML, in the server's terms."`
}

// errDiffers is how diff says with its exit code that there is a difference.
var errDiffers = errors.New("the policies differ from the file")

func (a *policyApplyCmd) Run(c *policyCmd) error  { return c.apply(os.Stdout, a.File) }
func (d *policyDiffCmd) Run(c *policyCmd) error   { return c.diff(os.Stdout, d.File, d.JSON) }
func (e *policyExportCmd) Run(c *policyCmd) error { return c.export(os.Stdout, e.JSON) }

// apply sends what differs, and says what it was.
func (c *policyCmd) apply(w io.Writer, path string) error {
	file, err := policyfile.Open(path)
	if err != nil {
		return err
	}
	return c.with(func(s *policyServer) error {
		now, err := s.policies()
		if err != nil {
			return err
		}
		steps := file.Compare(now)
		if err := s.change(steps); err != nil {
			return err
		}
		return report(w, steps, "changed")
	})
}

func (c *policyCmd) diff(w io.Writer, path string, asJSON bool) error {
	file, err := policyfile.Open(path)
	if err != nil {
		return err
	}
	return c.with(func(s *policyServer) error {
		now, err := s.policies()
		if err != nil {
			return err
		}
		steps := file.Compare(now)
		write := func() error { return report(w, steps, "to change") }
		if asJSON {
			write = func() error { return writeJSON(w, stepsJSON(steps)) }
		}
		if err := write(); err != nil || len(steps) == 0 {
			return err
		}
		return errDiffers
	})
}

func (c *policyCmd) export(w io.Writer, asJSON bool) error {
	return c.with(func(s *policyServer) error {
		now, err := s.policies()
		if err != nil {
			return err
		}
		if asJSON {
			return writeJSON(w, now)
		}
		return policyfile.Write(w, now)
	})
}

// stepJSON is a change as programs read it.
type stepJSON struct {
	Before string `json:"before"` // "": it is new
	After  string `json:"after"`
}

func stepsJSON(steps []policyfile.Step) []stepJSON {
	list := make([]stepJSON, len(steps))
	for i, step := range steps {
		list[i] = stepJSON{step.Before, step.After}
	}
	return list
}

// report lists steps, what is taken away with a minus and what comes with a plus.
func report(w io.Writer, steps []policyfile.Step, what string) error {
	for _, step := range steps {
		if step.Before != "" {
			fmt.Fprintf(w, "- %s\n", plainText(step.Before))
		}
		fmt.Fprintf(w, "+ %s\n", plainText(step.After))
	}
	if len(steps) == 0 {
		what = "nothing " + what
	} else {
		what = fmt.Sprintf("%d %s", len(steps), what)
	}
	_, err := fmt.Fprintln(w, what)
	return err
}
