package chaos

import (
	"testing"
)

func TestUseful(t *testing.T) {
	second := func(led bool, decisions, admitted int64) Second { return Second{led, decisions, admitted} }
	run := func(n int, s Second) []Second {
		var out []Second
		for range n {
			out = append(out, s)
		}
		return out
	}
	for name, c := range map[string]struct {
		seconds []Second
		bad     bool
	}{
		"a good run":             {seconds: run(10, second(true, 500, 99))},
		"denies everything":      {seconds: run(10, second(true, 500, 0)), bad: true},
		"hardly answers":         {seconds: run(10, second(true, 20, 99)), bad: true},
		"never a leader":         {seconds: run(10, second(false, 0, 0)), bad: true},
		"nothing":                {bad: true},
		"quiet while leaderless": {seconds: append(run(10, second(true, 500, 99)), run(5, second(false, 0, 0))...)},
		"the second after": {seconds: append(append(run(10, second(true, 500, 99)), second(false, 0, 0),
			second(true, 0, 0)), run(3, second(true, 500, 99))...)},
	} {
		t.Run(name, func(t *testing.T) { requireErr(t, c.bad, ErrUseless, Useful(usefulnessOf(100, c.seconds))) })
	}
}
