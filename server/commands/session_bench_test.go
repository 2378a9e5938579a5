package commands

import (
	"testing"
)

// BenchmarkDecision measures one pipelined decision without the engine and the socket: lookup, parsing, batching and
// the reply.
func BenchmarkDecision(b *testing.B) {
	for name, line := range map[string]string{
		"tokenbucket": "RL.TOKENBUCKET user:42 10/s 100",
		"minute":      "RL.TOKENBUCKET user:42 1000/m 100 COST 5",
		"fixed":       "RL.FIXED user:42 1m 100",
		"strike":      "RL.STRIKE auth:42 15m 4 2s 6 5s 11 15m",
	} {
		b.Run(name, func(b *testing.B) {
			s := sessionOn(b, instant{})
			args := words(line)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				s.Do(args)
				if i%128 == 127 {
					s.DecidePending()
					s.Truncate(0)
				}
			}
		})
	}
}
