package main

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestMemoryBound(t *testing.T) {
	for text, want := range map[string]int64{"auto": 750, "0": 0, "32mb": 32 << 20} {
		var m memoryBound
		require.NoError(t, m.UnmarshalText([]byte(text)))
		require.Equal(t, want, m.resolve(1000), text)
	}
	var m memoryBound
	require.Error(t, m.UnmarshalText([]byte("some")))
	require.ErrorContains(t, m.UnmarshalText([]byte("1mb")), "at least 16mb")
}

func TestMachineMemory(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	meminfo := file("MemTotal:        1000 kB\nMemFree: 1 kB\n")
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
	}{
		"nothing known": {fstest.MapFS{}, 0},
		"machine only":  {fstest.MapFS{"proc/meminfo": meminfo}, 1000 << 10},
		"unbounded group": {fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": file("max\n")},
			1000 << 10},
		"container": {fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": file("4096\n")}, 4096},
		"container, old way": {fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": file(
			"8192\n")}, 8192},
		"service in a slice": {fstest.MapFS{
			"proc/meminfo":     meminfo,
			"proc/self/cgroup": file("0::/system.slice/weir.service\n"),
			"sys/fs/cgroup/system.slice/weir.service/memory.max": file("max\n"),
			"sys/fs/cgroup/system.slice/memory.max":              file("500\n"),
		}, 500},
		"bigger than the machine": {fstest.MapFS{"proc/meminfo": meminfo,
			"sys/fs/cgroup/memory.max": file("9223372036854771712\n")}, 1000 << 10},
	} {
		require.Equal(t, c.want, machineMemory(c.files), name)
	}
}
