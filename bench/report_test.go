package bench

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/bench/machine"
)

func sampleReport() *Report {
	at := func(perSecond, p50, p999, cpu float64, admitted int) Sample {
		return Sample{Requests: 1000, PerSecond: perSecond, Latency: Latency{P50Ms: p50, P999Ms: p999}, CPUMicros: cpu,
			ServerBusy: 0.5, Read: 100, Admitted: admitted, GeneratorMicros: 0.1, GeneratorBusy: 0.3}
	}
	rows := []Row{
		{Label: "weir", Target: "weir", Samples: []Sample{at(1.7e6, 2, 4, 0.5, 90), at(1.8e6, 2.2, 4, 0.7, 70)}},
		{Label: "redis+lua", Target: "redis+lua", CommandLine: []string{"redis-benchmark", "-n", "1"},
			Samples: []Sample{at(1.7e5, 40, 80, 7, 100), at(1.2e5, 50, 80, 8, 100)}},
	}
	for i := range rows[0].Samples { // one thread of the generator is saturated
		rows[0].Samples[i].Threads, rows[0].Samples[i].GeneratorBusy = 1, 0.97
	}
	summarize(rows)
	s := beside("bucket-p128", bucket(50, 128))
	s.Entrants = nil
	return &Report{
		Machine: machine.Machine{CPU: "CPU", Cores: 2}, Generator: "load by weir-bench", Repetitions: 2, CellTime: "1s",
		Targets:   []Contender{{"weir", "weir 1.0.0", [][]string{{"weir", "serve"}}}},
		Scenarios: []ScenarioReport{{Scenario: s, Rows: rows}},
	}
}

func TestSummary(t *testing.T) {
	rows := sampleReport().Scenarios[0].Rows
	require.Equal(t, Spread{1.75e6, 1.7e6, 1.8e6}, rows[0].Figures[Rate])
	require.InDelta(t, 0.8, rows[0].AdmittedShare, 1e-9)
	require.Equal(t, Spread{12.5, 10, 15}, rows[1].FirstOverThis, "by repetition, not of the medians")
	require.Equal(t, Spread{45, 40, 50}, rows[1].Figures[P50])
	require.Equal(t, Spread{7.5, 7, 8}, rows[1].Figures[CPU])
	require.NotContains(t, rows[1].Figures, BytesPerKey, "what was not measured is no figure")
	require.True(t, rows[0].GeneratorLimit)
	require.False(t, rows[1].GeneratorLimit)
}

func TestTable(t *testing.T) {
	var out strings.Builder
	require.NoError(t, sampleReport().WriteTable(&out))
	lines := strings.Split(out.String(), "\n")
	row := func(name string) string {
		for _, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), name+" ") {
				return strings.Join(strings.Fields(line), " ")
			}
		}
		return ""
	}
	require.Equal(t, "weir *1.75M (1.7M-1.8M) 0.60µs (0.50µs-0.70µs) 2.1 ms 4 ms 80 %", row("weir"))
	require.Equal(t, "redis+lua 145k (120k-170k) 12.50x (10.00x-15.00x) 7.50µs (7.00µs-8.00µs) 45 ms 80 ms 100 %",
		row("redis+lua"))
	require.Contains(t, out.String(), "*: the load generator was the bottleneck")
	require.Contains(t, out.String(), "generator used 0.10µs to 0.10µs of CPU per request")
	require.NotContains(t, out.String(), "WARNING")
}

func TestTableWarnsOfABusyMachine(t *testing.T) {
	report := sampleReport()
	report.Machine.LoadAverage = 1.2
	var out strings.Builder
	require.NoError(t, report.WriteTable(&out))
	require.Contains(t, out.String(), "WARNING: the machine was busy")
}

func TestJSONKeepsEverySample(t *testing.T) {
	var out strings.Builder
	require.NoError(t, sampleReport().WriteJSON(&out))
	var back Report
	require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
	require.Equal(t, sampleReport(), &back)
	require.Contains(t, out.String(), `"p999_ms": 4`)
}

func TestRate(t *testing.T) {
	for perSecond, want := range map[float64]string{
		0: "0", 512.4: "512", 999.4: "999", 999.6: "1k", 98_349: "98.3k", 762_000: "762k", 999_600: "1M",
		1_754_000: "1.75M",
	} {
		require.Equal(t, want, rate(perSecond))
	}
}

func TestProgress(t *testing.T) {
	var out strings.Builder
	writeStep(&out, Step{5, 10, "bucket-p128", "weir"})
	require.Equal(t, eraseLine+"[##########..........] 5/10 bucket-p128: weir", out.String())

	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	tell, clearLine := Progress(file)
	require.Nil(t, tell, "no progress line in a file")
	clearLine()
	written, err := os.ReadFile(file.Name())
	require.NoError(t, err)
	require.Empty(t, written)
}
