package server

import "github.com/weir-project/weir/engine"

// redisRate is go-redis/redis_rate, which sends burst, rate, period in seconds and
// cost.
func redisRate() *dialect {
	return &dialect{
		name: "go-redis/redis_rate", registry: "Go", native: "RL.TOKENBUCKET key rate/period burst COST n [PARTIAL]",
		scripts: []*script{
			{
				id: engine.RedisRateAllowN, name: "allowN", keys: 1, args: 4, read: readRedisRate, reply: replyRedisRate,
				texts: []scriptText{{"f52a5b566060d79fd321d695df55bc918339c4aa", "v9.1.1 to v10.0.1"}},
			},
			{
				id: engine.RedisRateAllowAtMost, name: "allowAtMost", keys: 1, args: 4, read: readRedisRate, reply: replyRedisRate,
				texts: []scriptText{{"054143318f521948424aa25df61d7f7ba835a9d7", "v9.1.1 to v10.0.1"}},
			},
		},
	}
}

func readRedisRate(call *engine.Script, argv [][]byte) error {
	err := readNumbers(call, argv)
	for i := 1; i <= 2 && err == nil; i++ {
		err = positive(i, call.Args[i], argv[i])
	}
	return err
}

func replyRedisRate(s *session, words [4]int64) {
	s.array(4)
	s.int(words[0])
	s.int(words[1])
	s.luaNumber(words[2])
	s.luaNumber(words[3])
}
