package ledger

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStaleness(t *testing.T) {
	history := []Op{grant(30, 40, 1, 0), grant(0, 10, 2, 0), grant(12, 14, 5, 0).unheard(), grant(50, 60, 4, 0)}
	read := func(callMs, ageMs, used int64) StaleRead {
		at := callMs * ms
		return StaleRead{At: "b", CallNs: at, ReturnNs: at, Age: time.Duration(ageMs * ms), Used: used}
	}
	for name, c := range map[string]struct {
		reads []StaleRead
		bad   int
		want  error
	}{
		"everything":                         {reads: []StaleRead{read(100, 0, 7)}},
		"more than is known":                 {reads: []StaleRead{read(100, 0, 12)}},
		"before the first":                   {reads: []StaleRead{read(5, 0, 0), read(100, 91, 0)}},
		"lacks what is younger than its age": {reads: []StaleRead{read(100, 40, 3), read(100, 60, 2)}},
		"lacks what was in flight":           {reads: []StaleRead{read(55, 0, 3)}},
		"understated": {reads: []StaleRead{read(100, 39, 3), read(100, 59, 2), read(100, 89, 0),
			read(61, 0, 3)}, bad: 4, want: ErrUnderstated},
		"of any age":       {reads: []StaleRead{read(100, 1<<40, 0)}},
		"of the future":    {reads: []StaleRead{read(49, 0, 9)}, want: ErrNotTaken},
		"beside a request": {reads: []StaleRead{read(50, 0, 12)}},
	} {
		t.Run(name, func(t *testing.T) {
			bad, err := Staleness(history, c.reads)
			require.Equal(t, c.bad, bad)
			requireErr(t, c.want, err)
		})
	}
}
