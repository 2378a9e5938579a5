package main

import (
	"errors"
	"os"

	"github.com/alecthomas/kong"

	"github.com/weir-project/weir/internal/cli/cmdline"
)

// AfterApply runs after all values of any command have been read. It refuses variables that no flag reads, and invalid
// values. weir doctor gets these errors as a finding, so that its other checks still run.
func (c *cli) AfterApply(ctx *kong.Context) error {
	err := errors.Join(cmdline.CheckVariables(ctx.Model.Node, ctx.Selected(), os.Environ()), cmdline.CheckValues(ctx))
	if selected := ctx.Selected(); selected != nil && selected.Name == doctorName {
		c.Doctor.slips = err
		return nil
	}
	return err
}

// AfterApply records which flags were given.
func (s *serveCmd) AfterApply(ctx *kong.Context) error {
	s.given = make(map[string]string)
	for _, flag := range ctx.Flags() {
		if how := cmdline.HowGiven(ctx, flag); how != "" {
			s.given[flag.Name] = how
		}
	}
	return nil
}
