package timezone

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestZoneTablesAreKept checks that the table of a zone is computed once, that an unknown name is not cached, and that
// the cache stays within its bound.
func TestZoneTablesAreKept(t *testing.T) {
	var c zoneCache
	first, err := c.Get([]byte("Europe/Berlin"))
	require.NoError(t, err)
	again, err := c.Get([]byte("Europe/Berlin"))
	require.NoError(t, err)
	require.Same(t, first, again)
	_, err = c.Get([]byte("Europe/Nowhere"))
	require.ErrorContains(t, err, "must be an IANA time zone")
	require.Len(t, c.tables, 1)

	for i := range maxZones {
		c.tables[fmt.Sprint(i)] = first
	}
	other, err := c.Get([]byte("Asia/Tokyo"))
	require.NoError(t, err)
	require.Equal(t, "Asia/Tokyo", other.Name)
	require.Len(t, c.tables, maxZones+1)
}
