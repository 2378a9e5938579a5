package commands

import (
	"testing"

	"github.com/weir-project/weir/engine"
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
					s.Settle()
					s.Out = s.Out[:0]
				}
			}
		})
	}
}

// BenchmarkReply measures the reply of five integers alone, with short and with long integers.
func BenchmarkReply(b *testing.B) {
	for name, ds := range map[string][2]engine.Decision{
		"admitted": {{Allowed: 1, Remaining: 19, ResetMs: 100, Limit: 20},
			{Allowed: 1, Remaining: 7, ResetMs: 1200, Limit: 20}},
		"denied": {{RetryMs: 3_599_000, ResetMs: 3_599_000, Limit: 1}, {RetryMs: 812, ResetMs: 1812, Limit: 1}},
		"large": {{Allowed: 1, Remaining: 999_999, RetryMs: -1, ResetMs: 1e9, Limit: 1e6},
			{Allowed: 1, Remaining: 99_999, ResetMs: 99_000, Limit: 1e6}},
	} {
		b.Run(name, func(b *testing.B) {
			var out []byte
			for i := 0; b.Loop(); i++ {
				out = appendDecision(out[:0], "*5\r\n", &ds[i&1])
			}
		})
	}
}
