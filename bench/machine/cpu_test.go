package machine

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	const behindName = " S 1 42 42 0 -1 4194560 900 0 3 0 250 31 4 2 20 0 7 0 12345 1000000 500 18446744073709551615"
	for _, name := range []string{"redis-server", "a b", ":-) 1 2 (", ""} {
		used, err := parseStat([]byte("4242 (" + name + ")" + behindName))
		require.NoError(t, err, name)
		require.Equal(t, (250+31+4+2)*10*time.Millisecond, used, name)
	}
}

func TestParseStatRefuses(t *testing.T) {
	for _, stat := range []string{"", "42", "42 (x) S 1 2 3", "42 x S 1 42 42 0 -1 1 900 0 3 0 250 31 4 2",
		"42 (x) S 1 42 42 0 -1 4194560 900 0 3 0 abc 31 4 2 20"} {
		_, err := parseStat([]byte(stat))
		require.ErrorIs(t, err, ErrProcStat, stat)
	}
}

func TestCPUTimeOfNobody(t *testing.T) {
	used, err := CPUTime(nil)
	require.NoError(t, err)
	require.Zero(t, used)
}

func TestCPUTimeGrowsWithWork(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc on this system: ", err)
	}
	self := []int{os.Getpid()}
	before, err := CPUTime(self)
	require.NoError(t, err)
	for used := before; used == before; { // spins until the system counts a tick
		used, err = CPUTime(self)
		require.NoError(t, err)
		require.GreaterOrEqual(t, used, before)
	}
}
