package machine

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestMachine(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	m := This(fstest.MapFS{
		"proc/cpuinfo": file(
			"processor\t: 0\nmodel name\t: Fast CPU 9000\nprocessor\t: 1\nmodel name\t: other\n"),
		"proc/loadavg":              file("0.42 0.3 0.2 1/99 1234\n"),
		"proc/sys/kernel/osrelease": file("6.1.0\n"),
		"etc/os-release":            file("NAME=x\nPRETTY_NAME=\"Some Linux 12\"\n"),
	})
	require.Equal(t, "Fast CPU 9000", m.CPU)
	require.Equal(t, "Some Linux 12", m.OS)
	require.Equal(t, "6.1.0", m.Kernel)
	require.InDelta(t, 0.42, m.LoadAverage, 1e-9)
	require.Positive(t, m.Cores)

	require.Zero(t, This(fstest.MapFS{}).LoadAverage, "a system that says nothing is no error")
}
