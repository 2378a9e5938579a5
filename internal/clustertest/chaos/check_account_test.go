package chaos

import (
	"testing"
)

func TestAccounted(t *testing.T) {
	refund := Op{Verb: Refund, Units: 2}
	for name, c := range map[string]struct {
		left int64
		ops  []Op
		want error
	}{
		"every unit":           {left: 3, ops: []Op{grant(0, 1, 7)}},
		"one forgotten":        {left: 4, ops: []Op{grant(0, 1, 7)}, want: ErrForgotten},
		"one too many":         {left: 2, ops: []Op{grant(0, 1, 7)}, want: ErrOvercharged},
		"unknown, applied":     {left: 1, ops: []Op{grant(0, 1, 7), unknown(grant(0, 1, 2))}},
		"unknown, not applied": {left: 3, ops: []Op{grant(0, 1, 7), unknown(grant(0, 1, 2))}},
		"unknown, applied twice": {left: 0, ops: []Op{grant(0, 1, 6), unknown(grant(0, 1, 2))},
			want: ErrOvercharged},
		"refunded":                       {left: 5, ops: []Op{grant(0, 1, 7), refund}},
		"refunded twice":                 {left: 7, ops: []Op{grant(0, 1, 7), refund}, want: ErrForgotten},
		"refund unknown, applied or not": {left: 5, ops: []Op{grant(0, 1, 7), unknown(refund)}},
	} {
		t.Run(name, func(t *testing.T) {
			requireErr(t, c.want != nil, c.want, Accounted(10, c.left, c.ops))
		})
	}
}
