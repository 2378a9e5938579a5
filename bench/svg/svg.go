// Package svg draws charts for a page that is stored or sent. It uses no chart library: such libraries load scripts
// from another host, which such a page must not do, or know only one colour scheme.
package svg

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"
)

// These are the measures of a chart in pixels, and the number of colours that its page defines.
const (
	chartWidth, lineHeight = 720, 300
	barHeight, barGap      = 20, 8
	marginLeft, marginEnd  = 190, 110 // room for labels and for values
	axisLeft, axisBottom   = 70, 40
	colours                = 6
)

// Bar is a value and its spread.
type Bar struct {
	Label, Text      string
	Value, Low, High float64
}

// Bars draws bars from zero, each with a line from its minimum to its maximum.
func Bars(title string, bars []Bar) template.HTML {
	most := 0.0
	for _, b := range bars {
		most = max(most, b.High)
	}
	var svg strings.Builder
	height := len(bars)*(barHeight+barGap) + barGap
	x := func(v float64) float64 { return marginLeft + v/most*(chartWidth-marginLeft-marginEnd) }
	begin(&svg, title, height)
	for i, b := range bars {
		y := barGap + i*(barHeight+barGap)
		mid := y + barHeight/2
		fmt.Fprintf(&svg, `<text x="%d" y="%d" text-anchor="end" dominant-baseline="middle">%s</text>`, marginLeft-8,
			mid, html.EscapeString(b.Label))
		fmt.Fprintf(&svg, `<rect class="f%d" x="%d" y="%d" width="%.1f" height="%d"/>`, i%colours, marginLeft, y,
			x(b.Value)-marginLeft, barHeight)
		fmt.Fprintf(&svg, `<line class="spread" x1="%.1f" x2="%.1f" y1="%d" y2="%d"/>`, x(b.Low), x(b.High), mid, mid)
		fmt.Fprintf(&svg, `<text x="%.1f" y="%d" dominant-baseline="middle">%s</text>`, x(b.High)+8, mid,
			html.EscapeString(b.Text))
	}
	svg.WriteString("</svg>")
	return template.HTML(svg.String())
}

// Series is a line through points.
type Series struct {
	Label  string
	Points []Point
}

// Point is a point of a line.
type Point struct{ X, Y float64 }

// Mark is a value on an axis, and its label.
type Mark struct {
	At   float64
	Text string
}

// Lines draws lines. Both axes are logarithmic, because the values span orders of magnitude. Values must be above zero.
func Lines(title string, all []Series, xMarks []Mark, yText func(float64) string) template.HTML {
	low, high := yRange(all)
	left, right := xMarks[0].At, xMarks[len(xMarks)-1].At
	x := func(v float64) float64 {
		return axisLeft + share(v, left, right)*(chartWidth-axisLeft-20)
	}
	y := func(v float64) float64 {
		return lineHeight - axisBottom - share(v, low, high)*(lineHeight-axisBottom-15)
	}
	var svg strings.Builder
	begin(&svg, title, lineHeight+20*((len(all)+1)/2))
	for _, m := range xMarks {
		fmt.Fprintf(&svg, `<line class="grid" x1="%.1f" x2="%.1f" y1="15" y2="%d"/>`, x(m.At), x(m.At),
			lineHeight-axisBottom)
		fmt.Fprintf(&svg, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`, x(m.At), lineHeight-axisBottom+18,
			html.EscapeString(m.Text))
	}
	for _, v := range yMarks(low, high) {
		fmt.Fprintf(&svg, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`, axisLeft,
			chartWidth-20, y(v), y(v))
		fmt.Fprintf(&svg, `<text x="%d" y="%.1f" text-anchor="end" dominant-baseline="middle">%s</text>`, axisLeft-6,
			y(v), html.EscapeString(yText(v)))
	}
	for i, s := range all {
		draw(&svg, i, s, x, y)
	}
	svg.WriteString("</svg>")
	return template.HTML(svg.String())
}

// draw draws one line, its points and its entry in the legend.
func draw(svg *strings.Builder, i int, s Series, x, y func(float64) float64) {
	points := make([]string, len(s.Points))
	for i, p := range s.Points {
		points[i] = fmt.Sprintf("%.1f,%.1f", x(p.X), y(p.Y))
	}
	fmt.Fprintf(svg, `<polyline class="l%d" points="%s"/>`, i%colours, strings.Join(points, " "))
	for _, p := range s.Points {
		fmt.Fprintf(svg, `<circle class="f%d" cx="%.1f" cy="%.1f" r="2.5"/>`, i%colours, x(p.X), y(p.Y))
	}
	atX, atY := axisLeft+(i%2)*(chartWidth-axisLeft)/2, lineHeight+5+20*(i/2)
	fmt.Fprintf(svg, `<rect class="f%d" x="%d" y="%d" width="14" height="4"/>`, i%colours, atX, atY-2)
	fmt.Fprintf(svg, `<text x="%d" y="%d" dominant-baseline="middle">%s</text>`, atX+20, atY,
		html.EscapeString(s.Label))
}

// begin opens a picture that is at most as wide as its page. Its title is the text for screen readers.
func begin(svg *strings.Builder, title string, height int) {
	fmt.Fprintf(svg, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, chartWidth, height,
		html.EscapeString(title))
}

// share returns the position of a value between two others, from 0 to 1, on a logarithmic scale.
func share(v, low, high float64) float64 {
	if high <= low {
		return 0.5
	}
	return math.Log(v/low) / math.Log(high/low)
}

// yRange returns whole powers of ten that cover all points.
func yRange(all []Series) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, s := range all {
		for _, p := range s.Points {
			low, high = min(low, p.Y), max(high, p.Y)
		}
	}
	low, high = math.Pow(10, math.Floor(math.Log10(low))), math.Pow(10, math.Ceil(math.Log10(high)))
	return low, max(high, low*10)
}

// yMarks returns the powers of ten of a range.
func yMarks(low, high float64) (marks []float64) {
	for v := low; v <= high*1.01; v *= 10 {
		marks = append(marks, v)
	}
	return marks
}
