package top

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/server/httpapi"
)

// policyRow is a policy with its rates since view.since, or -1 while they are not known.
type policyRow struct {
	httpapi.PolicyStatus
	allowedRate, deniedRate float64
}

// idle reports whether the policy received no request.
func (r *policyRow) idle() bool { return r.allowedRate == 0 && r.deniedRate == 0 }

// policyRows returns the policies, the busiest of the last minute first.
func (v *view) policyRows() []policyRow {
	before := make(map[string]httpapi.PolicyStatus)
	if v.since != nil {
		for _, p := range v.since.Policies {
			before[p.Name] = p
		}
	}
	var rows []policyRow
	for _, p := range v.now.Policies {
		row := policyRow{p, -1, -1}
		if v.since != nil {
			old := before[p.Name] // a new policy began at 0
			row.allowedRate = v.grew(v.since, old.Allowed, p.Allowed)
			row.deniedRate = v.grew(v.since, old.Limited, p.Limited)
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b policyRow) int {
		return cmp.Or(cmp.Compare(b.allowedRate+b.deniedRate, a.allowedRate+a.deniedRate),
			cmp.Compare(b.Allowed+b.Limited, a.Allowed+a.Limited))
	})
	return rows
}

// policies returns at most height lines. The last line counts the policies without a line. Idle policies have lines
// only if all policies fit.
func (v *view) policies(width, height int) []string {
	rows := v.policyRows()
	if len(rows) == 0 || height < 3 { // no space for a single policy
		return nil
	}
	shown := rows
	if height != unbounded {
		if first := slices.IndexFunc(rows, func(r policyRow) bool { return r.idle() }); first >= 0 {
			shown = rows[:first]
		}
		if most := height - 2; len(shown) > most || len(shown) == most && len(shown) < len(rows) {
			shown = shown[:most-1]
		}
	}
	lines := append([]string{""}, rightAligned(v.policyTable(shown, width))...)
	if hidden := rows[len(shown):]; len(hidden) > 0 {
		lines = append(lines, v.foldedText(hidden))
	}
	return lines
}

// policyNames returns the column names before the policy's name. A narrow screen has no totals.
func policyNames(width int) []string {
	if width < narrowWidth {
		return []string{"ALLOWED/S", "DENIED/S", "%"}
	}
	return []string{"ALLOWED/S", "DENIED/S", "DENIED %", "ALLOWED", "DENIED", "SHADOWED"}
}

func (v *view) policyTable(rows []policyRow, width int) []string {
	names, title := policyNames(width), "POLICY"
	switch {
	case v.since == nil:
	case width < narrowWidth:
		title += ", " + between(v.since, v.now)
	default:
		title += ", last " + between(v.since, v.now)
	}
	table := []string{strings.Join(append(names, title), "\t")}
	for _, r := range rows {
		cells := []string{
			perSecond(r.allowedRate), perSecond(r.deniedRate), share(r.deniedRate, r.allowedRate+r.deniedRate),
			fmt.Sprint(r.Allowed), fmt.Sprint(r.Limited), fmt.Sprint(r.Shadowed),
		}
		table = append(table, strings.Join(append(cells[:len(names):len(names)], terminal.PlainText(r.Name)), "\t"))
	}
	return table
}

// foldedText returns one line about the policies without a line.
func (v *view) foldedText(hidden []policyRow) string {
	var idle []string
	for i := range hidden {
		if hidden[i].idle() {
			idle = append(idle, terminal.PlainText(hidden[i].Name))
		}
	}
	text := ""
	if busy := len(hidden) - len(idle); busy > 0 {
		text = fmt.Sprintf("%d more; ", busy)
	}
	if len(idle) == 0 {
		return strings.TrimSuffix(text, "; ")
	}
	return fmt.Sprintf("%s%d idle: %s", text, len(idle), strings.Join(idle, ", "))
}

// share returns a part in percent of a whole, or "-" if the whole is zero.
func share(part, whole float64) string {
	if whole <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", 100*part/whole)
}
