package bench

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func sampleReport() *Report {
	rows := []Row{
		{Target: "weir", Samples: []Sample{
			{PerSecond: 1.7e6, P50Ms: 2, CPUMicros: 0.5, Probed: 100, Admitted: 90, GeneratorBusy: 0.99},
			{PerSecond: 1.8e6, P50Ms: 2.2, CPUMicros: 0.7, Probed: 100, Admitted: 70, GeneratorBusy: 0.97},
		}},
		{Target: "redis+lua", Samples: []Sample{
			{PerSecond: 1.7e5, P50Ms: 40, CPUMicros: 7, Probed: 100, Admitted: 100, GeneratorBusy: 0.2},
			{PerSecond: 1.2e5, P50Ms: 50, CPUMicros: 8, Probed: 100, Admitted: 100, GeneratorBusy: 0.2},
		}},
	}
	summarize(rows)
	return &Report{
		Machine: Machine{CPU: "CPU", Cores: 2}, Repetitions: 2,
		Targets:   []Contender{{"weir", "weir 1.0.0", [][]string{{"weir", "serve"}}}},
		Scenarios: []ScenarioReport{{Standard()[0], rows}},
	}
}

func TestSummary(t *testing.T) {
	rows := sampleReport().Scenarios[0].Rows
	require.Equal(t, Spread{1.75e6, 1.7e6, 1.8e6}, rows[0].PerSecond)
	require.InDelta(t, 0.8, rows[0].AdmittedShare, 1e-9)
	require.Equal(t, Spread{12.5, 10, 15}, rows[1].FirstOverThis, "by repetition, not of the medians")
	require.Equal(t, Spread{45, 40, 50}, rows[1].P50Ms)
	require.Equal(t, Spread{7.5, 7, 8}, rows[1].CPUMicros)
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
	require.Equal(t, "weir *1.75M (1.7M-1.8M) 0.60µs (0.50µs-0.70µs) 2.1 ms 80 %", row("weir"))
	require.Equal(t, "redis+lua 145k (120k-170k) 12.50x (10.00x-15.00x) 7.50µs (7.00µs-8.00µs) 45 ms 100 %", row("redis+lua"))
	require.Contains(t, out.String(), "*: the load generator's one thread was busy")
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
	require.Contains(t, out.String(), `"pipeline": 128`)
}

func TestRate(t *testing.T) {
	for perSecond, want := range map[float64]string{
		0: "0", 512.4: "512", 999.4: "999", 999.6: "1k", 98_349: "98.3k", 762_000: "762k", 999_600: "1M", 1_754_000: "1.75M",
	} {
		require.Equal(t, want, rate(perSecond))
	}
}

func TestMachine(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	m := ThisMachine(fstest.MapFS{
		"proc/cpuinfo":              file("processor\t: 0\nmodel name\t: Fast CPU 9000\nprocessor\t: 1\nmodel name\t: other\n"),
		"proc/loadavg":              file("0.42 0.3 0.2 1/99 1234\n"),
		"proc/sys/kernel/osrelease": file("6.1.0\n"),
		"etc/os-release":            file("NAME=x\nPRETTY_NAME=\"Some Linux 12\"\n"),
	})
	require.Equal(t, "Fast CPU 9000", m.CPU)
	require.Equal(t, "Some Linux 12", m.OS)
	require.Equal(t, "6.1.0", m.Kernel)
	require.InDelta(t, 0.42, m.LoadAverage, 1e-9)
	require.Positive(t, m.Cores)

	require.Zero(t, ThisMachine(fstest.MapFS{}).LoadAverage, "a system that says nothing is no error")
}

func TestProgress(t *testing.T) {
	var out strings.Builder
	writeStep(&out, Step{Done: 5, Total: 10, Scenario: Standard()[0], Target: "weir"})
	require.Equal(t, eraseLine+"[##########..........] 5/10 token bucket -P 128: weir", out.String())

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
