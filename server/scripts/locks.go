package scripts

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
)

// Libraries of locks take a lock by SET NX with a random token. Their scripts release the lock, or lengthen it, if it
// still has the token.

func redisPyLock() *dialect {
	return &dialect{
		name: "redis-py Lock", registry: "PyPI", native: lockNative,
		scripts: []*Script{
			release("release", scriptText{"c3f8721cbb97f72bc19e972846bd7aaf91901658", "3.0.1 to 8.1.0"}),
			lengthen("reacquire", scriptText{"1cac51482acf5858da00f6d685d68f886cd6b6b2", "3.5.3 to 8.1.0"}),
		},
	}
}

func redsync() *dialect {
	return &dialect{
		name: "go-redsync/redsync", registry: "Go", native: lockNative,
		scripts: []*Script{
			tellsMissing(release("delete", scriptText{"e950836ed1e694540c503ef9972b8de518044d3b", "4.12.1 to 4.18.1"})),
			release("delete", scriptText{"00583931c4e4d483f6233879c133c71ed5393f9d", "4.0.4 to 4.11.0"}),
			lengthen("touch", scriptText{"d75bb8b5bd13532ddedd17762e772346e39b321e", "4.0.4 to 4.18.1"}),
		},
	}
}

func redisSemaphore() *dialect {
	return &dialect{
		name: "redis-semaphore", registry: "npm", native: lockNative,
		scripts: []*Script{
			release("release", scriptText{"7157921a7cc7cfba979acf6d63f073151df17d12", "5.0.0 to 5.8.0"}),
			lengthen("refresh", scriptText{"594683e49a64ebaf975caf5f8079a1d097c438f1", "5.6.2 to 5.8.0"}),
		},
	}
}

const lockNative = "RL.ACQUIRE key 1 ttl HOLDER token"

// release is a script that deletes the key if it has the token. weir replaces the token by nothing and lets it end at
// once, because that also tells whether the key was there.
func release(name string, text scriptText) *Script {
	return &Script{
		ID: engine.TextSwap, Name: name, Keys: 1, Args: "v", Reply: ReplyOne, texts: []scriptText{text},
		Check: func(call *engine.Script, _ [][]byte) error {
			call.Args[0], call.Args[1] = engine.TextExpireMs, -1
			return nil
		},
	}
}

// lengthen is a script that gives the key a time to live in milliseconds if it has the token.
func lengthen(name string, text scriptText) *Script {
	return &Script{
		ID: engine.TextSwap, Name: name, Keys: 1, Args: "vw", Reply: ReplyOne, texts: []scriptText{text},
		Check: func(call *engine.Script, argv [][]byte) error {
			call.Values[1] = call.Values[0]
			return livesFor(0, 1, 1)(call, argv)
		},
	}
}

// tellsMissing makes a script answer -1 if the key does not exist.
func tellsMissing(sc *Script) *Script {
	sc.Variant = 1
	sc.Reply = func(w resp.Reply, words [4]int64) {
		if words[1] == 0 {
			w.Int(-1)
			return
		}
		w.Int(words[0])
	}
	return sc
}
