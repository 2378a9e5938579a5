package persistence

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecordRoundTrip(t *testing.T) {
	for _, r := range []Record{
		{LimiterNs: 1},
		{Flush: 1<<64 - 1, LimiterNs: 1<<62 - 1, WallNs: -1, OffsetNs: -1 << 62, Test: true},
		{Flush: 7, LimiterNs: 1_700_000_000_000_000_000, WallNs: 1_700_000_000_000_000_001, OffsetNs: 12345},
	} {
		got, err := decodeRecord(r.encode())
		require.NoError(t, err)
		require.Equal(t, r, got)
	}
}

func TestRecordRefusesDamage(t *testing.T) {
	good := Record{Flush: 3, LimiterNs: 1e18, WallNs: 1e18}.encode()
	for i := range good {
		for bit := range 8 {
			bad := append([]byte(nil), good...)
			bad[i] ^= 1 << bit
			_, err := decodeRecord(bad)
			require.ErrorIs(t, err, ErrDamaged, "byte %d bit %d", i, bit)
		}
	}
	for n := range len(good) {
		_, err := decodeRecord(good[:n])
		require.ErrorIs(t, err, ErrDamaged)
	}
	_, err := decodeRecord(append(good, 0))
	require.ErrorIs(t, err, ErrDamaged)
	_, err = decodeRecord(Record{LimiterNs: -1}.encode())
	require.ErrorIs(t, err, ErrDamaged)
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(Record{Flush: 3, LimiterNs: 1e18, WallNs: 1e18}.encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := decodeRecord(b)
		if err == nil {
			require.Equal(t, b, r.encode())
		}
	})
}
