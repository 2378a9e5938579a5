package bench

import (
	"fmt"
	"io"
	"slices"
)

// Goal is the purpose of a scenario: a figure of one entrant, or its ratio to another entrant's figure. A missed goal
// fails nothing, because only a reader who knows the machine can judge a figure.
type Goal struct {
	Scenario string  `json:"scenario"`
	Figure   Figure  `json:"figure"`
	Of       string  `json:"of"`
	Over     string  `json:"over,omitempty"` // empty: the figure itself counts
	AtLeast  float64 `json:"at_least,omitempty"`
	AtMost   float64 `json:"at_most,omitempty"`
}

// Result is the outcome of a run for a goal, repetition by repetition.
type Result struct {
	Goal
	Measured Spread `json:"measured"`
}

// Met reports whether the median reaches the goal.
func (r Result) Met() bool {
	return r.Measured.Median >= r.AtLeast && (r.AtMost == 0 || r.Measured.Median <= r.AtMost)
}

// Goals returns the goals of weir on a machine that it shares with its load generator.
func Goals() []Goal {
	const one, many = "one hot key", "100k keys"
	return []Goal{
		{"bucket-p128", Rate, weirName, luaName, 12, 0},
		{"bucket-p128", Rate, weirName, setName, 1.5, 0},
		{"bucket-p1", Rate, weirName, luaName, 1.3, 0},
		{"log-p128", Rate, weirName, luaName, 12, 0},
		{"open-half", P999, weirName, luaName, 0, 0.7},
		{"bucket-p128", CPU, weirName, "", 0, 0.6},
		{"hot-key", Rate, one, many, 0.8, 0},
		{"check-p128", Rate, fourName, oneName, 0.6, 0},
		{"memory-1m", BytesPerKey, weirName, luaName, 0, 0.35},
		{"memory-10m", BytesPerKey, weirName, luaName, 0, 0.35},
		{"live-keys", P999, "10M keys", "10k keys", 0, 1.5},
		{"live-keys-steady", P999, "10M keys", "10k keys", 0, 1.5},
		{"cluster-p128", Rate, leaderName, luaName, 3, 0},
		{"cluster-p16", Rate, leaderName, luaName, 1, 0},
		{"cluster-p1", Rate, leaderName, luaName, 0.3, 0},
		{"cluster-c512", Rate, leaderName, luaName, 0.6, 0},
		{"cluster-denied", Rate, leaderName, weirName, 0.8, 0},
		{"cluster-p128", Rate, followerName, leaderName, 0.5, 0},
	}
}

// Judge adds the results for goals to the report. It omits goals that were not measured.
func (r *Report) Judge(goals []Goal) {
	for _, g := range goals {
		of := figuresOf(r.sampled(g.Scenario, g.Of), g.Figure)
		if g.Over != "" {
			over := figuresOf(r.sampled(g.Scenario, g.Over), g.Figure)
			of = of[:min(len(of), len(over))]
			for i := range of {
				of[i] /= over[i]
			}
		}
		if len(of) > 0 {
			r.Results = append(r.Results, Result{g, spreadOf(of)})
		}
	}
}

// sampled returns the samples of an entrant, or nil if it was not measured.
func (r *Report) sampled(scenario, label string) []Sample {
	for _, s := range r.Scenarios {
		if s.Name != scenario {
			continue
		}
		for _, row := range s.Rows {
			if row.Label == label {
				return row.Samples
			}
		}
	}
	return nil
}

// figuresOf returns the values of a figure, or nil if it was not measured.
func figuresOf(samples []Sample, f Figure) []float64 {
	values := mapOf(samples, kindOf(f).of)
	if slices.Contains(values, 0) {
		return nil
	}
	return values
}

// wanted formats a goal's bound.
func (g Goal) wanted() string {
	word, bound := "at least", g.AtLeast
	if g.AtMost > 0 {
		word, bound = "at most", g.AtMost
	}
	return word + " " + g.format()(bound)
}

func (g Goal) format() func(float64) string {
	if g.Over == "" {
		return kindOf(g.Figure).format
	}
	return times
}

// over describes the basis of a ratio.
func (g Goal) over() string {
	if g.Over == "" {
		return "itself"
	}
	return g.Over
}

// verdict is empty if the goal is met.
func (r Result) verdict() string {
	if r.Met() {
		return ""
	}
	return "missed"
}

func writeResults(w io.Writer, all []Result) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nwhat this is run for")
	return resultsGrid(all).writeText(w)
}

func resultsGrid(all []Result) grid {
	g := grid{Head: []string{"scenario", "figure", "of", "over", "wanted", "measured", ""}}
	for _, r := range all {
		line := plains(r.Scenario, kindOf(r.Figure).name, r.Of, r.over(), r.wanted())
		g.Rows = append(g.Rows, append(line, r.Measured.entry(r.format()), plain(r.verdict())))
	}
	return g.withoutEmpty()
}
