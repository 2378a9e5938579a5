package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// GuardRisk is the probability that [Guard] calls any figure better or worse although both programs are equal. The
// figures of a run share it.
const GuardRisk = 0.05

// DefaultPairs is enough that two disturbed pairs of the nine figures of [GuardScenarios] change no verdict.
const DefaultPairs = 16

// Verdict is the change of a figure from one program to another.
type Verdict string

const (
	Better Verdict = "better"
	Worse  Verdict = "worse"
	Same   Verdict = "within the noise"
	// Unknown is the verdict without enough measurements.
	Unknown Verdict = "unknown"
)

// leastChange is the usual difference between two runs of the same program on the same machine. A smaller difference of
// medians never counts as a change.
const leastChange = 0.03

// guarded are the figures that Guard compares.
var guarded = []Figure{Rate, CPU, P99}

// Guard compares two programs of weir: a base, and this revision. It measures them in pairs, and starts both again for
// each pair, because two processes of one program differ in speed for as long as they live. The order within a pair
// alternates, so that a machine that slows down favours neither.
type Guard struct {
	Pairs int
	// Runner measures one pair: its Repetitions do not count.
	Runner Runner
}

// GuardScenarios returns the scenarios of a usual guard: token buckets at three depths of pipelining.
func GuardScenarios() (all []Scenario) {
	for _, depth := range rivalDepths {
		all = append(all, beside(fmt.Sprintf("bucket-p%d", depth), bucket(usualClients, depth), weirName))
	}
	return all
}

// rivalDepths are the depths of pipelining in comparisons. Most clients use 1, which comes first in case a run has too
// little time.
var rivalDepths = []int{1, 16, 128}

// Run measures all pairs. After an error it returns the completed pairs too.
func (g *Guard) Run(ctx context.Context, scenarios []Scenario) (*GuardReport, error) {
	versus, err := versusBase(scenarios)
	if err != nil {
		return nil, err
	}
	pairs := newPairs(versus)
	risk := GuardRisk / float64(len(pairs))
	if medianRank(g.Pairs, risk) == 0 {
		return nil, fmt.Errorf("%w: %d pairs cannot tell %d figures from noise", ErrTooFewPairs, g.Pairs, len(pairs))
	}
	report := &GuardReport{Risk: risk}
	for report.Pairs < g.Pairs {
		measured, err := g.pair(ctx, report.Pairs, versus)
		if err == nil && len(measured.LeftOut) > 0 {
			err = fmt.Errorf("%s: %s", measured.LeftOut[0].Name, measured.LeftOut[0].Why)
		}
		if err != nil {
			report.judge(pairs)
			return report, err
		}
		addPair(pairs, measured)
		report.Pairs++
	}
	report.judge(pairs)
	return report, nil
}

// pair measures both programs once, in the order of this pair.
func (g *Guard) pair(ctx context.Context, number int, scenarios []Scenario) (*Report, error) {
	runner := g.Runner
	runner.Repetitions = 1
	if tell := g.Runner.Progress; tell != nil {
		runner.Progress = func(s Step) {
			s.Doing = fmt.Sprintf("%s, pair %d of %d", s.Doing, number+1, g.Pairs)
			tell(s)
		}
	}
	return runner.Run(ctx, inOrder(scenarios, number%2 == 1))
}

// inOrder returns the scenarios. It reverses the order of the entrants if reversed is true.
func inOrder(scenarios []Scenario, reversed bool) []Scenario {
	return mapOf(scenarios, func(s Scenario) Scenario {
		s.Entrants = slices.Clone(s.Entrants)
		if reversed {
			slices.Reverse(s.Entrants)
		}
		return s
	})
}

// versusBase returns the scenarios with the base beside this revision, each under the load of this revision. It omits
// scenarios without this revision.
func versusBase(scenarios []Scenario) (all []Scenario, err error) {
	for _, s := range scenarios {
		i := slices.IndexFunc(s.Entrants, func(e Entrant) bool { return e.Target == weirName })
		if i >= 0 && s.RateOf == "" {
			all = append(all, beside(s.Name, s.Entrants[i].Load, baseName, weirName))
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no chosen scenario has one node of weir in a closed loop or at a given rate")
	}
	return all, nil
}

// Paired is a figure of two programs, measured in pairs.
type Paired struct {
	Scenario string    `json:"scenario"`
	Figure   Figure    `json:"figure"`
	Base     []float64 `json:"base"`
	This     []float64 `json:"this"` // of the same pair at the same index

	Ratio   Spread  `json:"this_over_base"`
	Low     float64 `json:"ratio_least"` // of the confidence interval of the ratio's median
	High    float64 `json:"ratio_most"`
	Verdict Verdict `json:"verdict"`
}

// newPairs returns a figure for each scenario and guarded quantity, without values.
func newPairs(scenarios []Scenario) (all []*Paired) {
	for _, s := range scenarios {
		for _, f := range guarded {
			all = append(all, &Paired{Scenario: s.Name, Figure: f})
		}
	}
	return all
}

// addPair adds the figures of a report, which has one repetition of both programs.
func addPair(all []*Paired, r *Report) {
	for _, p := range all {
		base := figuresOf(r.sampled(p.Scenario, baseName), p.Figure)
		this := figuresOf(r.sampled(p.Scenario, weirName), p.Figure)
		if len(base) == 1 && len(this) == 1 {
			p.Base, p.This = append(p.Base, base...), append(p.This, this...)
		}
	}
}

// judge decides whether a figure changed beyond the noise. The confidence interval of the ratio's median must exclude
// 1, and the median must differ from 1 by at least leastChange.
func (p *Paired) judge(risk float64) {
	ratios := make([]float64, len(p.Base))
	for i := range ratios {
		ratios[i] = p.This[i] / p.Base[i]
	}
	p.Ratio, p.Verdict = spreadOf(ratios), Same
	low, high, ok := medianInterval(ratios, risk)
	if !ok {
		p.Verdict = Unknown
		return
	}
	p.Low, p.High = low, high
	if low <= 1 && high >= 1 || math.Abs(p.Ratio.Median-1) < leastChange {
		return
	}
	if p.Verdict = Worse; (p.Ratio.Median > 1) == kindOf(p.Figure).more {
		p.Verdict = Better
	}
}
