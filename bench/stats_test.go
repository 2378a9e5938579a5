package bench

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		name   string
		values []float64
		want   Spread
	}{
		{"none", nil, Spread{}},
		{"one", []float64{3}, Spread{3, 3, 3}},
		{"odd", []float64{9, 1, 4}, Spread{4, 1, 9}},
		{"even takes the middle", []float64{8, 1, 2, 4}, Spread{3, 1, 8}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, spreadOf(c.values)) })
	}
}

func TestSpreadLeavesItsInputInOrder(t *testing.T) {
	values := []float64{3, 1, 2}
	spreadOf(values)
	require.Equal(t, []float64{3, 1, 2}, values)
}
