package chaos

import (
	"testing"
)

func TestOverHeld(t *testing.T) {
	hold := func(from, till int64) Hold { return Hold{FromNs: from, TillNs: till, Units: 1} }
	for name, c := range map[string]struct {
		holds []Hold
		bad   bool
	}{
		"one after the other":       {holds: []Hold{hold(0, 5), hold(5, 9), hold(9, 11)}},
		"two at once":               {holds: []Hold{hold(0, 5), hold(1, 9), hold(5, 11)}},
		"three at once":             {holds: []Hold{hold(0, 5), hold(1, 9), hold(4, 11)}, bad: true},
		"answered after it ran out": {holds: []Hold{hold(0, 5), hold(1, 9), hold(4, 3)}},
	} {
		t.Run(name, func(t *testing.T) { requireErr(t, c.bad, ErrOverHeld, OverHeld(2, c.holds)) })
	}
}
