package scripts

import "github.com/weir-project/weir/engine"

// pythonLimits is the library limits, used by Flask-Limiter and slowapi. It sends the window in seconds and the amount,
// and for sliding windows also the limit. Its moving windows store a list of times.
func pythonLimits() *dialect {
	return &dialect{
		name: "limits (Flask-Limiter, slowapi), but for moving windows", registry: "PyPI",
		native: "RL.FIXED key window max FIRST; RL.SLIDINGCOUNTER key window max",
		scripts: []*Script{
			{
				ID: engine.LimitsIncr, Name: "incr_expire", Keys: 1, Args: "ii", Reply: ReplyOne,
				texts: []scriptText{{"628bd136a573a06b346879695681af12ccef300f", "2.3.0 to 5.8.0"}},
			},
			{
				ID: engine.LimitsSlide, Name: "acquire_sliding_window", Keys: 2, Args: "nwi", Reply: replyTrue,
				texts: []scriptText{{"e8ac2a60cb040b0dbb56815a1e9c6fd032ce62e7", "4.1 to 5.8.0"}},
			},
			{
				ID: engine.LimitsLook, Name: "sliding_window", Keys: 2, Args: "w", Reply: replyGetPTTLTwice,
				texts: []scriptText{{"e7a0a27d4101baabb124af209bb0245197a359a1", "4.1 to 5.8.0"}},
			},
		},
	}
}

// fastapiLimiter sends limit and window in milliseconds. From 0.2 on it sends no script of its own.
func fastapiLimiter() *dialect {
	return &dialect{
		name: "fastapi-limiter", registry: "PyPI", native: "RL.FIXED key window max FIRST",
		scripts: []*Script{{
			ID: engine.FastapiHit, Name: "lua_script", Keys: 1, Args: "nw", Reply: ReplyOne,
			texts: []scriptText{{"a3f9e982197e9e887f6b5dcb7ec273863bb83aad", "0.1.4 to 0.1.6"}},
		}},
	}
}
