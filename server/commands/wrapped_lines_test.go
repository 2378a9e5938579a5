package commands

// wrappedLines are the commands that the rows of TestWrappedCommandsAskTheSame send. %k is the row's key, and %m is a
// key that every user may use. %n is a number, and %s is the text of a script. Every command with keys or operations
// must be listed.
var wrappedLines = map[string][]string{
	"rl.tokenbucket": {"RL.TOKENBUCKET %k 10/s 10"}, "rl.leakybucket": {"RL.LEAKYBUCKET %k 10/s 10"},
	"rl.fixed": {"RL.FIXED %k 1m 10"}, "rl.sliding": {"RL.SLIDING %k 1m 10"},
	"rl.slidingcounter": {"RL.SLIDINGCOUNTER %k 1m 10"}, "rl.strike": {"RL.STRIKE %k 15m 2 2s COST 0"},
	"rl.acquire": {"RL.ACQUIRE %k 3 1m HOLDER me"},
	"rl.check":   {"RL.CHECK p %k", "RL.CHECK p %m p %k", "RL.CHECK p %m q %m q %k COST 2"},
	"rl.wait":    {"RL.WAIT RL.TOKENBUCKET %k 10/s 10 TIMEOUT 0"}, "rl.explain": {"RL.EXPLAIN RL.CHECK p %k"},
	"rl.reserve": {
		"RL.RESERVE p %k 2 1m ID %m",
		"RL.RESERVE p %m 2 1m ID %k",
		"RL.RESERVE p %m 2 1m AND q %k ID %m",
	},
	"rl.commit": {"RL.COMMIT %k 2"}, "rl.cancel": {"RL.CANCEL %k"}, "rl.release": {"RL.RELEASE %k me"},
	"rl.renew": {"RL.RENEW %k me 1m"}, "rl.refund": {"RL.REFUND %k 1"},
	"rl.forgive": {"RL.FORGIVE p %k", "RL.FORGIVE p %m q %k"},
	"rl.reset":   {"RL.RESET %k", "RL.RESET %m %k"}, "rl.block": {"RL.BLOCK %k 1m"}, "rl.unblock": {"RL.UNBLOCK %k"},
	"del": {"DEL %k", "DEL %m %k"}, "unlink": {"UNLINK %m %k"}, "rl.inspect": {"RL.INSPECT %k"},
	"hgetall": {"HGETALL %k"}, "hget": {"HGET %k used"}, "hmget": {"HMGET %k used"}, "ttl": {"TTL %k"},
	"hlen": {"HLEN %k"}, "hkeys": {"HKEYS %k"}, "hexists": {"HEXISTS %k used"}, "zcard": {"ZCARD %k"},
	"pttl": {"PTTL %k"}, "type": {"TYPE %k"},
	"exists": {"EXISTS %k", "EXISTS %m %k"}, "memory|usage": {"MEMORY USAGE %k"},
	"sismember":  {"SISMEMBER %k 192.0.2.7"},
	"smismember": {"SMISMEMBER %k 192.0.2.7"}, "smembers": {"SMEMBERS %k"}, "scard": {"SCARD %k"},
	"sscan":           {"SSCAN %k 0"},
	"object|encoding": {"OBJECT ENCODING %k"}, "watch": {"WATCH %k", "WATCH %m %k"},
	"cl.throttle": {"CL.THROTTLE %k 15 30 60"}, "throttle": {"THROTTLE %k 15 30 60"}, "gcra": {"GCRA %k 15 30 60"},
	"increx":  {"INCREX %k"},
	"evalsha": {"EVALSHA " + allowN + " 1 %k 10 1 1 1", "EVALSHA " + zeroToken + " 2 %k %m 1 1 1 1"},
	"eval":    {`EVAL "%s" 1 %k 10 1 1 1`}, "get": {"GET %k"}, "set": {"SET %k 5"}, "incr": {"INCR %k"},
	"incrby": {"INCRBY %k 2"}, "decr": {"DECR %k"}, "decrby": {"DECRBY %k 2"}, "expire": {"EXPIRE %k 9"},
	"setex": {"SETEX %k 9 v"}, "psetex": {"PSETEX %k 9 v"}, "setnx": {"SETNX %k v"}, "getset": {"GETSET %k v"},
	"getdel": {"GETDEL %k"},
	"getex":  {"GETEX %k"}, "mget": {"MGET %k", "MGET %m %k"}, "strlen": {"STRLEN %k"}, "append": {"APPEND %k v"},
	"expireat": {"EXPIREAT %k 9"}, "pexpireat": {"PEXPIREAT %k 9"}, "persist": {"PERSIST %k"},
	"pexpire": {"PEXPIRE %k 9"}, "rl.policy|set": {"RL.POLICY SET p%n LIMIT TOKENBUCKET 1/s 1"},
	"rl.policy|override": {"RL.POLICY OVERRIDE p * UNLIMITED TTL 1ms"}, "rl.policy|del": {"RL.POLICY DEL none"},
	"rl.policy|enable": {"RL.POLICY ENABLE p"}, "rl.policy|disable": {"RL.POLICY DISABLE r"},
	"rl.policy|shadow": {"RL.POLICY SHADOW r OFF"}, "auth": {"AUTH all x"}, "hello": {"HELLO 2 AUTH all x"},
}
