package server

import "testing"

// BenchmarkDecision is what one pipelined decision costs above the engine and
// below the socket: lookup, parsing, batching, reply.
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
				s.do(args)
				if i%128 == 127 {
					s.settle()
					s.out = s.out[:0]
				}
			}
		})
	}
}

// BenchmarkReply is the five integers alone.
func BenchmarkReply(b *testing.B) {
	lim := instant{}
	s := sessionOn(b, lim)
	s.do(words("RL.TOKENBUCKET user:42 10/s 100"))
	ds := s.batch.room()
	if err := lim.Decide(s.batch.ops, ds); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		s.out = appendDecision(s.out[:0], "*5\r\n", &ds[0])
	}
}
