package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/weir-project/weir/bench/machine"
)

// GuardReport is the result of a [Guard].
type GuardReport struct {
	Started time.Time       `json:"started"`
	Machine machine.Machine `json:"machine"`
	Base    string          `json:"base"` // the revisions
	This    string          `json:"this"`
	Pairs   int             `json:"pairs"`
	Risk    float64         `json:"risk"` // of a wrong verdict, for each figure
	Figures []Paired        `json:"figures"`
}

func (r *GuardReport) judge(pairs []*Paired) {
	for _, p := range pairs {
		p.judge(r.Risk)
		r.Figures = append(r.Figures, *p)
	}
}

// WriteJSON writes the report with the values of every pair.
func (r *GuardReport) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// WriteText writes a line for each figure, the rule of the verdicts, and the overall verdict.
func (r *GuardReport) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s\nbase %s, this %s, %d pairs alternately; medians\n\n", r.Machine, r.Base, r.This, r.Pairs)
	g := grid{Head: []string{"scenario", "figure", "base", "this", "this/base", "verdict"}}
	for _, p := range r.Figures {
		k := kindOf(p.Figure)
		ratio := entry{times(p.Ratio.Median), fmt.Sprintf("(%s-%s)", ratioText(p.Low), ratioText(p.High))}
		g.Rows = append(g.Rows, []entry{plain(p.Scenario), plain(k.name), plain(k.format(spreadOf(p.Base).Median)),
			plain(k.format(spreadOf(p.This).Median)), ratio, plain(string(p.Verdict))})
	}
	if err := g.writeText(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n"+
		"in brackets: the %.2f %% confidence interval of the ratio's median, from the sign test\n"+
		"better or worse: the interval excludes 1, and the median differs from 1 by %.0f %% or more\n"+
		"equal programs get only %q in at least %.0f of 100 runs\n\nverdict: %s\n",
		100*(1-r.Risk), 100*leastChange, Same, 100*(1-GuardRisk), r.verdict())
	return err
}

func ratioText(ratio float64) string { return fmt.Sprintf("%.3f", ratio) }

// verdict counts the figures that changed.
func (r *GuardReport) verdict() string {
	count := make(map[Verdict]int)
	for _, p := range r.Figures {
		count[p.Verdict]++
	}
	switch {
	case count[Unknown] > 0:
		return "unknown: too few pairs were measured"
	case count[Better]+count[Worse] == 0:
		return string(Same)
	default:
		return fmt.Sprintf("%d better, %d worse, %d within the noise", count[Better], count[Worse], count[Same])
	}
}
