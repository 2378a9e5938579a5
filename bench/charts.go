package bench

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"

	"github.com/weir-project/weir/bench/svg"
)

// chart is a picture and its title.
type chart struct {
	Title string
	SVG   template.HTML
}

// charts returns the charts that a scenario has data for.
func (s ScenarioReport) charts() []chart {
	if len(s.Rows) == 0 {
		return nil
	}
	if s.Axis != "" {
		return slices.Concat(s.scaling(Rate), s.scaling(CPU), s.scaling(P999), s.scaling(BytesPerKey))
	}
	return slices.Concat(s.bars(Rate), s.curves(), s.bars(CPU), s.bars(BytesPerKey))
}

// bars compares a figure of all rows.
func (s ScenarioReport) bars(f Figure) []chart {
	var bars []svg.Bar
	k := kindOf(f)
	for _, row := range s.Rows {
		if v, ok := row.Figures[f]; ok && v.Max > 0 {
			bars = append(bars, svg.Bar{
				Label: row.Label, Text: k.format(v.Median), Value: v.Median, Low: v.Min, High: v.Max,
			})
		}
	}
	if len(bars) == 0 {
		return nil
	}
	return []chart{{k.name, svg.Bars(s.Name+": "+k.name, bars)}}
}

// curves draws latency over percentiles. The axis shows the share of requests that are slower, so that the tail gets as
// much space as the rest.
func (s ScenarioReport) curves() []chart {
	var all []svg.Series
	for _, row := range s.Rows {
		line := svg.Series{Label: row.Label}
		for _, p := range row.Curve {
			if p.Percentile >= 50 && p.Percentile < 100 && p.Ms > 0 {
				line.Points = append(line.Points, svg.Point{X: 1 / (1 - p.Percentile/100), Y: p.Ms})
			}
		}
		if line.Points != nil {
			all = append(all, line)
		}
	}
	if all == nil {
		return nil
	}
	marks := []svg.Mark{
		{At: 2, Text: "p50"}, {At: 10, Text: "p90"}, {At: 100, Text: "p99"}, {At: 1000, Text: "p99.9"},
		{At: 10_000, Text: "p99.99"}, {At: 100_000, Text: "p99.999"},
	}
	return []chart{{"latency by percentile", svg.Lines(s.Name+": latency by percentile", all, marks, millis)}}
}

// scaling draws a figure along the scenario's axis, with a line for each target.
func (s ScenarioReport) scaling(f Figure) []chart {
	var all []svg.Series
	var at []float64
	for _, row := range s.Rows {
		v, ok := row.Figures[f]
		if !ok || v.Median <= 0 {
			continue
		}
		label := row.Target
		if s.Axis == "nodes" {
			label = "weir"
		}
		i := slices.IndexFunc(all, func(line svg.Series) bool { return line.Label == label })
		if i < 0 {
			i, all = len(all), append(all, svg.Series{Label: label})
		}
		all[i].Points = append(all[i].Points, svg.Point{X: row.At, Y: v.Median})
		at = append(at, row.At)
	}
	if len(at) < 2 {
		return nil
	}
	slices.Sort(at)
	marks := mapOf(slices.Compact(at), func(v float64) svg.Mark { return svg.Mark{At: v, Text: strconv.Itoa(int(v))} })
	title := fmt.Sprintf("%s over %s", kindOf(f).name, s.Axis)
	return []chart{{title, svg.Lines(s.Name+": "+title, all, marks, kindOf(f).format)}}
}
