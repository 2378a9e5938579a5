package bench

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
	if low <= 1 && high >= 1 || abs(p.Ratio.Median-1) < leastChange {
		return
	}
	if p.Verdict = Worse; (p.Ratio.Median > 1) == kindOf(p.Figure).more {
		p.Verdict = Better
	}
}
