package bench

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
)

// chart is a picture and what it shows.
type chart struct {
	Title string
	SVG   template.HTML
}

// charts are those a scenario has figures for.
func (s ScenarioReport) charts() []chart {
	if len(s.Rows) == 0 {
		return nil
	}
	if s.Axis != "" {
		return slices.Concat(s.scaling(Rate), s.scaling(CPU), s.scaling(P999), s.scaling(BytesPerKey))
	}
	return slices.Concat(s.bars(Rate), s.curves(), s.bars(CPU), s.bars(BytesPerKey))
}

// bars compare a figure of all rows.
func (s ScenarioReport) bars(f Figure) []chart {
	var bars []bar
	k := kindOf(f)
	for _, row := range s.Rows {
		if v, ok := row.Figures[f]; ok && v.Max > 0 {
			bars = append(bars, bar{row.Label, k.format(v.Median), v.Median, v.Min, v.Max})
		}
	}
	if len(bars) == 0 {
		return nil
	}
	return []chart{{k.name, barChart(s.Name+": "+k.name, bars)}}
}

// curves draw latency over percentiles. The axis is of the share of requests that are
// slower still, so that the tail has as much room as the rest.
func (s ScenarioReport) curves() []chart {
	var all []series
	for _, row := range s.Rows {
		line := series{label: row.Label}
		for _, p := range row.Curve {
			if p.Percentile >= 50 && p.Percentile < 100 && p.Ms > 0 {
				line.points = append(line.points, point{1 / (1 - p.Percentile/100), p.Ms})
			}
		}
		if line.points != nil {
			all = append(all, line)
		}
	}
	if all == nil {
		return nil
	}
	marks := []mark{{2, "p50"}, {10, "p90"}, {100, "p99"}, {1000, "p99.9"}, {10_000, "p99.99"}, {100_000, "p99.999"}}
	return []chart{{"latency by percentile", lineChart(s.Name+": latency by percentile", all, marks, millis)}}
}

// scaling draws a figure along the scenario's axis, a line for each target.
func (s ScenarioReport) scaling(f Figure) []chart {
	var all []series
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
		i := slices.IndexFunc(all, func(line series) bool { return line.label == label })
		if i < 0 {
			i, all = len(all), append(all, series{label: label})
		}
		all[i].points = append(all[i].points, point{row.At, v.Median})
		at = append(at, row.At)
	}
	if len(at) < 2 {
		return nil
	}
	slices.Sort(at)
	marks := mapOf(slices.Compact(at), func(v float64) mark { return mark{v, strconv.Itoa(int(v))} })
	title := fmt.Sprintf("%s over %s", kindOf(f).name, s.Axis)
	return []chart{{title, lineChart(s.Name+": "+title, all, marks, kindOf(f).format)}}
}
