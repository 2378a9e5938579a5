package scripts

import (
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
)

// slidingSet is a published pattern and not a library. The script adds the client's time to a sorted set for each
// admitted request. The client sends the beginning of the window, its own time, the limit and the length of the window.
func slidingSet() *dialect {
	return &dialect{
		name: "sliding log over a sorted set, with the client's time", registry: "pattern",
		native: "RL.SLIDING key window max",
		scripts: []*Script{{
			ID: engine.SlidingSet, Name: "isAllowed", Keys: 1, Args: "niww", Check: slidingSetIsKept, Reply: replyThree,
			texts: []scriptText{{"504c42a925470b7ef2e060d65cd0ece7956924c8", anySpace}},
			form:  "520c9948443a0cc4388afa1b0c9853a604f9a042",
		}},
	}
}

// slidingSetIsKept rejects values that the sliding log cannot hold.
func slidingSetIsKept(call *engine.Script, argv [][]byte) error {
	switch now, most := call.Args[1], call.Args[2]; {
	case now < 0 || now > engine.MaxSlidingSetMs:
		return limits.Bad(scriptArg(1),
			"must be a time in milliseconds from 0 to "+strconv.Itoa(engine.MaxSlidingSetMs), argv[1])
	case most > engine.MaxLogUnits:
		return limits.Bad(scriptArg(2), "must be a limit from 1 to "+strconv.Itoa(engine.MaxLogUnits), argv[2])
	}
	return nil
}
