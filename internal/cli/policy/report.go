package policy

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/policyfile"
)

// oneOwner returns the owner that all policies have, because a file has one owner. Several owners are an error.
func oneOwner(all []policyfile.Terms) (string, error) {
	var owners []string
	for _, t := range all {
		if !slices.Contains(owners, t.Owner) {
			owners = append(owners, t.Owner)
		}
	}
	switch len(owners) {
	case 0:
		return "", nil
	case 1:
		return owners[0], nil
	}
	slices.Sort(owners)
	flags := make([]string, len(owners))
	for i, owner := range owners {
		flags[i] = "--owner=" + terminal.PlainText(owner)
	}
	return "", fmt.Errorf("the policies have %d owners, but a file has one owner: export each owner separately, with "+
		"%s",
		len(owners), strings.Join(flags, ", "))
}

// stepJSON is a change in JSON.
type stepJSON struct {
	Before string `json:"before"` // "": it is new
	After  string `json:"after"`  // "": the file lacks it
}

func stepsJSON(steps []policyfile.Step) []stepJSON {
	list := make([]stepJSON, len(steps))
	for i, step := range steps {
		list[i] = stepJSON{step.Before, step.After}
	}
	return list
}

// reportDiff writes the policies that the file lacks, and then the changes that apply would make.
func reportDiff(w io.Writer, plan *policyfile.Plan) error {
	if len(plan.Extra) == 0 {
		return report(w, plan.Steps, "to change")
	}
	show(w, plan.Extra)
	show(w, plan.Steps)
	_, err := fmt.Fprintf(w, "%d to change, %d not in the file\n", len(plan.Steps), len(plan.Extra))
	return err
}

// report lists steps and counts them.
func report(w io.Writer, steps []policyfile.Step, what string) error {
	show(w, steps)
	if len(steps) == 0 {
		what = "nothing " + what
	} else {
		what = fmt.Sprintf("%d %s", len(steps), what)
	}
	_, err := fmt.Fprintln(w, what)
	return err
}

// show lists steps: removals with a minus, and additions with a plus.
func show(w io.Writer, steps []policyfile.Step) {
	for _, step := range steps {
		if step.Before != "" {
			fmt.Fprintf(w, "- %s\n", terminal.PlainText(step.Before))
		}
		if step.After != "" {
			fmt.Fprintf(w, "+ %s\n", terminal.PlainText(step.After))
		}
	}
}
