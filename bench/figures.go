package bench

import "fmt"

// Figure is a measured quantity of a cell, by its name in the JSON.
type Figure string

const (
	Rate        Figure = "decisions_per_second"
	P50         Figure = "p50_ms"
	P90         Figure = "p90_ms"
	P99         Figure = "p99_ms"
	P999        Figure = "p999_ms"
	Slowest     Figure = "max_ms"
	CPU         Figure = "server_cpu_us_per_decision"
	BytesPerKey Figure = "resident_bytes_per_key"
	DiskBytes   Figure = "disk_bytes_per_decision"
	IdleMemory  Figure = "resident_bytes_before"
	MostMemory  Figure = "resident_bytes_most"
)

// figureKind describes the presentation of a figure. A figure of 0 was not measured, or does not exist.
type figureKind struct {
	figure Figure
	name   string // for people
	of     func(Sample) float64
	format func(float64) string
	more   bool // larger values are better
}

var figureKinds = []figureKind{
	{Rate, "decisions/s", func(s Sample) float64 { return s.PerSecond }, rate, true},
	{P50, "p50", func(s Sample) float64 { return s.P50Ms }, millis, false},
	{P90, "p90", func(s Sample) float64 { return s.P90Ms }, millis, false},
	{P99, "p99", func(s Sample) float64 { return s.P99Ms }, millis, false},
	{P999, "p99.9", func(s Sample) float64 { return s.P999Ms }, millis, false},
	{Slowest, "max", func(s Sample) float64 { return s.MaxMs }, millis, false},
	{CPU, "server CPU", func(s Sample) float64 { return s.CPUMicros }, micros, false},
	{BytesPerKey, "bytes/key", func(s Sample) float64 { return s.BytesPerKey }, bytesText, false},
	{DiskBytes, "disk/decision", func(s Sample) float64 { return s.DiskBytes }, bytesText, false},
	{IdleMemory, "memory before", func(s Sample) float64 { return s.IdleMemory }, megabytes, false},
	{MostMemory, "memory", func(s Sample) float64 { return s.MostMemory }, megabytes, false},
}

// kindOf returns the kind of an existing figure.
func kindOf(f Figure) figureKind {
	for _, k := range figureKinds {
		if k.figure == f {
			return k
		}
	}
	return figureKind{figure: f, name: string(f), of: func(Sample) float64 { return 0 },
		format: func(v float64) string { return fmt.Sprint(v) }}
}

func times(ratio float64) string { return fmt.Sprintf("%.2fx", ratio) }
func micros(us float64) string   { return fmt.Sprintf("%.2fµs", us) }

func millis(ms float64) string {
	if ms >= 999.5 {
		return fmt.Sprintf("%.3g s", ms/1e3)
	}
	return fmt.Sprintf("%.3g ms", ms)
}

func bytesText(n float64) string {
	if n < 9.95 {
		return fmt.Sprintf("%.1f B", n)
	}
	return fmt.Sprintf("%.0f B", n)
}

func megabytes(n float64) string { return fmt.Sprintf("%.0f MB", n/1e6) }

// rate writes requests per second with up to three digits: 512, 98.3k, 1.75M.
func rate(perSecond float64) string {
	switch {
	case perSecond >= 999.5e3:
		return fmt.Sprintf("%.3gM", perSecond/1e6)
	case perSecond >= 999.5:
		return fmt.Sprintf("%.3gk", perSecond/1e3)
	default:
		return fmt.Sprintf("%.0f", perSecond)
	}
}

// mapOf returns f of each value.
func mapOf[T, U any](from []T, f func(T) U) []U {
	to := make([]U, len(from))
	for i, v := range from {
		to[i] = f(v)
	}
	return to
}
