package chaos

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStaleness(t *testing.T) {
	history := []Op{grant(30, 40, 1), grant(0, 10, 2), unknown(grant(12, 14, 5)), grant(50, 60, 4)}
	read := func(callMs, staleMs, used int64) StaleRead {
		return StaleRead{At: "b", CallNs: callMs * ms, StaleMs: staleMs, Used: used}
	}
	for name, c := range map[string]struct {
		reads []StaleRead
		bad   int
		want  error
	}{
		"everything":                         {reads: []StaleRead{read(100, 0, 7)}},
		"more than is known":                 {reads: []StaleRead{read(100, 0, 12)}},
		"before the first":                   {reads: []StaleRead{read(5, 0, 0), read(100, 91, 0)}},
		"lacks what is younger than its age": {reads: []StaleRead{read(100, 41, 3), read(100, 61, 2)}},
		"lacks what was in flight":           {reads: []StaleRead{read(55, 0, 3)}},
		"understated": {reads: []StaleRead{read(100, 40, 3), read(100, 60, 2), read(100, 90, 0),
			read(61, 0, 3)}, bad: 4, want: ErrUnderstated},
		"unknown": {reads: []StaleRead{read(100, unknownAgeMs, 0)}},
		"no age":  {reads: []StaleRead{{At: "b", CallNs: 100 * ms, Used: 7, Untold: true}}, want: ErrUntold},
	} {
		t.Run(name, func(t *testing.T) {
			bad, err := Staleness(history, c.reads)
			require.Equal(t, c.bad, bad)
			requireErr(t, c.want != nil, c.want, err)
		})
	}
}
