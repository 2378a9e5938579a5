package scripts

import "github.com/weir-project/weir/engine"

// pythonLimits is the library limits, used by Flask-Limiter and slowapi. It sends the window in seconds and the amount,
// and for sliding windows also the limit. For moving windows it also sends its own time, as a fraction.
func pythonLimits() *dialect {
	return &dialect{
		name: "limits (Flask-Limiter, slowapi)", registry: "PyPI",
		native: "RL.FIXED key window max FIRST; RL.SLIDINGCOUNTER key window max; RL.SLIDING key window max COST n",
		scripts: []*Script{
			{ID: engine.LimitsIncr, Name: "incr_expire", Keys: 1, Args: "ii", Reply: ReplyOne,
				texts: []scriptText{{"628bd136a573a06b346879695681af12ccef300f", "2.3.0 to 5.8.0"}}},
			{ID: engine.LimitsSlide, Name: "acquire_sliding_window", Keys: 2, Args: "nwi", Reply: replyTrue,
				texts: []scriptText{{"e8ac2a60cb040b0dbb56815a1e9c6fd032ce62e7", "4.1 to 5.8.0"}}},
			{ID: engine.LimitsLook, Name: "sliding_window", Keys: 2, Args: "w", Reply: replyGetPTTLTwice,
				texts: []scriptText{{"e7a0a27d4101baabb124af209bb0245197a359a1", "4.1 to 5.8.0"}}},
			{
				ID: engine.MovingTake, Name: "acquire_moving_window", Keys: 1, Args: "nhwi", Reply: replyTrue,
				texts: []scriptText{
					{"741eab638ba93ed71020bb821c45c022d0fa02c4", "5.0.0 to 5.8.0"},
					{"19c9778cd6391e2ee9f90aa518bf56256d15b4ae", "3.5.0 to 4.8.0"},
					{"bec85d5af0739203306474d2cac591c3d6f907d2", "3.1.6 to 3.4.0"},
				},
			},
			{ID: engine.MovingLook, Name: "moving_window", Keys: 1, Args: "nw", Reply: replyWindow,
				texts: []scriptText{{"ad795214f59fe26d6fdec07973836dd16586f5ec", "5.0.0 to 5.8.0"}}},
			{ID: engine.MovingCount, Name: "moving_window", Keys: 1, Args: "nw", Reply: replyWindow,
				texts: []scriptText{{"f2ef2962263bbe72f66f5bbd0da234e74d880068", "4.0.0 to 4.8.0"}}},
			{ID: engine.MovingCount, Name: "moving_window", Keys: 1, Args: "nw", Reply: replyWholeWindow(1), Variant: 1,
				texts: []scriptText{{"bf95c654b6be0a54713252ef2362a25546faf877", "3.10.0 to 3.14.1"}}},
			{ID: engine.MovingCount, Name: "moving_window", Keys: 1, Args: "nw", Reply: replyWholeWindow(2), Variant: 2,
				texts: []scriptText{{"3136f0028c572d2959b5cdc5ec15b287fab6a9ff", "3.1.6 to 3.9.0"}}},
			{
				Name: "clear_keys", Keys: 1, Several: DeletesLike, Reply: ReplyOne,
				texts: []scriptText{{"f2994557f1daca13bfef97c2a31ca4b174e031ca", "3.1.6 to 5.8.0"}},
			},
		},
	}
}

// fastapiLimiter sends limit and window in milliseconds. From 0.2 on it sends no script of its own.
func fastapiLimiter() *dialect {
	return &dialect{
		name: "fastapi-limiter", registry: "PyPI", native: "RL.FIXED key window max FIRST",
		scripts: []*Script{{ID: engine.FastapiHit, Name: "lua_script", Keys: 1, Args: "nw", Reply: ReplyOne,
			texts: []scriptText{{"a3f9e982197e9e887f6b5dcb7ec273863bb83aad", "0.1.4 to 0.1.6"}}}},
	}
}
