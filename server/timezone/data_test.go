package timezone

import (
	"io/fs"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine"
)

// TestShippedZones checks rules that releases 2026a to 2026f changed: Vancouver and Edmonton keep summer time, and
// Casablanca is at UTC again. Go 1.26.8 and Debian's tzdata 2025b are an hour off.
func TestShippedZones(t *testing.T) {
	for name, hours := range map[string]int{"America/Vancouver": -7, "America/Edmonton": -6, "Africa/Casablanca": 0} {
		location, err := loadZone([]byte(name))
		require.NoError(t, err)
		noon := time.Date(2026, 12, 15, 12, 0, 0, 0, time.UTC)
		day := WindowAt(noon.UnixNano(), engine.Day, location)
		begin := time.Date(2026, 12, 15, -hours, 0, 0, 0, time.UTC)
		require.Equal(t, begin, time.Unix(0, day.StartNs).UTC(), name)
		require.Equal(t, begin.AddDate(0, 0, 1), time.Unix(0, day.Ends.EndNs).UTC(), name)
	}
}

// TestShippedNames checks that every zone of the archive loads, and that the page about policies names its release.
func TestShippedNames(t *testing.T) {
	require.Greater(t, len(shipped().File), 500)
	for _, f := range shipped().File {
		_, err := loadZone([]byte(f.Name))
		require.NoError(t, err, f.Name)
	}
	page, err := os.ReadFile("../../docs/policies.md")
	require.NoError(t, err)
	require.Contains(t, string(page), "release "+shipped().Comment+" of the IANA's time zones")
}

// TestZoneInfo checks that ZONEINFO replaces the data that weir ships.
func TestZoneInfo(t *testing.T) {
	dir := t.TempDir()
	data, err := fs.ReadFile(shipped(), "Asia/Tokyo")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/Elsewhere", data, 0o600))
	_, err = loadZone([]byte("Elsewhere"))
	require.Error(t, err)
	t.Setenv("ZONEINFO", dir)
	_, err = loadZone([]byte("Elsewhere"))
	require.NoError(t, err)
}
