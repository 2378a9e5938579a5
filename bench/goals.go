package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Goal is a ratio that a suite is run for: of one target's rate to another's, in
// one scenario. Nothing fails when it is missed: a figure is for a reader to judge,
// who knows the machine.
type Goal struct {
	Scenario Scenario `json:"scenario"`
	Of       string   `json:"of"`
	Over     string   `json:"over"`
	AtLeast  float64  `json:"at_least"`
}

// Ratio is what a run found for a goal, repetition by repetition.
type Ratio struct {
	Goal
	Measured Spread `json:"measured"`
}

// ClusterGoals are what three fsynced nodes are to reach, with the load on the same
// cores.
func ClusterGoals() []Goal {
	suite := ClusterSuite()
	const redis, alone = "redis+lua", "weir"
	return []Goal{
		{suite[0], leaderName, redis, 2.5},
		{suite[1], leaderName, redis, 1},
		{suite[2], leaderName, redis, 0.3},
		{suite[3], leaderName, redis, 0.6},
		{suite[4], leaderName, alone, 0.7},
		{suite[0], followerName, leaderName, 0.5},
	}
}

// Compare puts what was found for goals into the report.
func (r *Report) Compare(goals []Goal) { r.Ratios = ratiosFor(goals, r.Scenarios) }

// ratiosFor looks goals up in scenarios. One that was not measured is left out.
func ratiosFor(goals []Goal, scenarios []ScenarioReport) []Ratio {
	var found []Ratio
	for _, g := range goals {
		of, over := samplesOf(g.Of, g.Scenario, scenarios), samplesOf(g.Over, g.Scenario, scenarios)
		if of != nil && over != nil {
			found = append(found, Ratio{g, spreadOf(ratios(of, over))})
		}
	}
	return found
}

// samplesOf returns nil for what was not measured.
func samplesOf(target string, in Scenario, scenarios []ScenarioReport) []Sample {
	for _, s := range scenarios {
		if s.Scenario != in {
			continue
		}
		for _, row := range s.Rows {
			if row.Target == target {
				return row.Samples
			}
		}
	}
	return nil
}

func writeRatios(w io.Writer, all []Ratio) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nwhat the suite is run for")
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "load\tof\tover\twanted\tmeasured\t\t\t")
	for _, r := range all {
		verdict := ""
		if r.Measured.Median < r.AtLeast {
			verdict = "missed"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\tat least %.3gx\t%s\t%s\t\n",
			r.Scenario, r.Of, r.Over, r.AtLeast, r.Measured.columns(times), verdict)
	}
	return table.Flush()
}
