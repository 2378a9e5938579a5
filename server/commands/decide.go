package commands

import (
	"slices"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
	"github.com/weir-project/weir/server/arg"
)

const (
	decideFlags = "write denyoom fast"
	fiveReply   = "The five integers: allowed, remaining, retry_after_ms, reset_after_ms, limit."
)

// These parameters belong to several decisions.
var (
	paramKey  = param{"key", "the limiter's name, for example a user or an address; 1 to 512 bytes"}
	paramRate = param{"rate",
		"units per time: `10/s`, `5/m`, `1000/h`, `1/6s`, `3/500ms`, `0.5/s`; a bare `10` is `10/s`"}
	paramWindow = param{"window",
		"a duration: `500ms`, `30s`, `1m`, `1h`, `1d`, `1w`; a bare `60` is `60s`; from 1 ms to 366 days. Write the " +
			"unit: other libraries expect the maximum first, and `100 60` is 60 in 100 seconds"}
	paramMax     = param{"max", "units admitted in one window"}
	paramCost    = param{"COST n", "units this request takes, 1 unless given; 0 reads without taking"}
	paramPartial = param{"PARTIAL", "grant the units that fit, up to the cost; `allowed` is their number"}
	paramFrom    = param{"FROM address",
		"the client's IP address: a block everywhere of this address denies the decision on any key. IPv6 addresses " +
			"count as their /64"}
	paramID = param{"ID token",
		"idempotency key: the same request with the same token within 60 seconds gets the first answer and takes " +
			"nothing. Another request on the key with this token is an error of `IDUSED`. A decision that took " +
			"nothing, such as a denial, is not remembered: send it again after its wait; 1 to 64 bytes"}
)

func decideCommands() []*command {
	return decisionDefaults(slices.Concat(bucketCommands(), windowCommands(), guardCommands()), groupDecide)
}

// bucketCommands limit the rate of requests.
func bucketCommands() []*command {
	return []*command{
		{
			name: "RL.TOKENBUCKET", arity: -4,
			syntax:  "key rate burst [COST n] [PARTIAL] [MAXWAIT duration] [FROM address] [ID token]",
			summary: "Admit bursts up to a size, and a steady rate after them",
			details: "The bucket starts full with `burst` tokens and refills continuously at `rate`. A request is " +
				"admitted when the bucket has the tokens for its cost. Nothing drifts: a caller that takes every " +
				"token the moment it exists is admitted exactly floor(burst + rate x time) times, with any number " +
				"of requests.\n\nWith `MAXWAIT` the bucket may run into debt: a request whose tokens arrive within " +
				"that time is admitted now, and `retry_after_ms` says how long to delay it first. `PARTIAL` and " +
				"`MAXWAIT` exclude each other.",
			params: []param{paramKey, paramRate, {"burst", "the size of the bucket in tokens"}, paramCost, paramPartial,
				{"MAXWAIT duration", "admit a request that fits after a wait of at most this"}, paramFrom, paramID},
			shown: []example{
				{"RL.TOKENBUCKET user:42 10/s 100", "1 99 0 100 100", "the first request finds a full bucket"},
				{"RL.TOKENBUCKET user:42 10/s 100 COST 100", "0 99 100 100 100",
					"one token short, it is there in 100 ms"},
				{"RL.TOKENBUCKET user:42 10/s 100 COST 100 PARTIAL", "99 0 0 10000 100", "takes the 99 that are there"},
				{"RL.TOKENBUCKET user:42 10/s 100 MAXWAIT 1s", "1 0 100 10100 100",
					"admitted, to be delayed for 100 ms"},
			},
			plan: planLimit(engine.TokenBucket, limits.Partial|limits.MaxWait),
		},
		{
			name: "RL.LEAKYBUCKET", arity: -4, syntax: "key rate capacity [COST n] [FROM address] [ID token]",
			summary: "Pace requests evenly through a bounded queue",
			details: "Admitted requests leave one at a time, 1/rate apart. `retry_after_ms` of an admitted request " +
				"is how long it waits in the queue: the caller delays it that long. A request that finds the queue " +
				"full is denied. This is nginx's `limit_req` with `burst` and without `nodelay`.",
			params: []param{paramKey, paramRate,
				{"capacity", "requests that may wait, besides the next to leave; 0 admits only at the pace"}, paramCost,
				paramFrom, paramID},
			shown: []example{
				{"RL.LEAKYBUCKET mail:7 10/s 2", "1 2 0 100 2", "leaves at once"},
				{"RL.LEAKYBUCKET mail:7 10/s 2", "1 1 100 200 2", "waits for 100 ms"},
				{"RL.LEAKYBUCKET mail:7 10/s 2", "1 0 200 300 2", "waits for 200 ms"},
				{"RL.LEAKYBUCKET mail:7 10/s 2", "0 0 100 300 2", "the queue is full"},
			},
			plan: planLimit(engine.LeakyBucket, 0),
		},
	}
}

// windowCommands limit the number of requests in a time window.
func windowCommands() []*command {
	return []*command{
		{
			name: "RL.FIXED", arity: -4,
			syntax: "key window|DAY|WEEK|MONTH|YEAR|FOREVER max [COST n] [PARTIAL] [FIRST] [TZ zone] [FROM " +
				"address] [ID token]",
			summary: "Count in fixed windows: per minute, per calendar day, for ever",
			details: "Windows of a duration are aligned to the epoch in UTC: with `1m` they run from :00 to :59 of " +
				"every minute. With `FIRST` the window begins at the first request instead. `DAY`, `WEEK` (from " +
				"Monday), `MONTH` and `YEAR` are calendar windows in the time zone `TZ`, UTC unless given; they " +
				"follow changes of the clock. `FOREVER` is a quota that never resets.\n\nAround the end of a " +
				"window a caller may be admitted twice the maximum within a short time. If that matters, use " +
				"`RL.SLIDING` or `RL.SLIDINGCOUNTER`.",
			params: []param{paramKey, paramWindow, paramMax, paramCost, paramPartial,
				{"FIRST", "begin the window at the first request; windows of a duration only"},
				{"TZ zone", "IANA name of the time zone, like `Europe/Berlin`; calendar windows only"},
				paramFrom, paramID},
			shown: []example{
				{"RL.FIXED ip:203.0.113.9 1m 2 FIRST", "1 1 0 60000 2", "the window begins"},
				{"RL.FIXED ip:203.0.113.9 1m 2 FIRST COST 2", "0 1 60000 60000 2",
					"one unit is left, two fit in the next window"},
				{"RL.FIXED trial:42 FOREVER 3", "1 2 0 -1 3", "a quota for life"},
				{"RL.FIXED export:42 MONTH 10 TZ Europe/Berlin", "1 9 0 * 10", "ten in a calendar month"},
			},
			plan: planLimit(engine.FixedWindow, limits.Partial|limits.First|limits.Zone),
		},
		{
			name: "RL.SLIDING", arity: -4, syntax: "key window max [COST n] [PARTIAL] [FROM address] [ID token]",
			summary: "Count exactly over the last window, from a log of admitted units",
			details: "Admitted when the units admitted within the last `window`, and the cost, are together at most " +
				"`max`. Exact at every instant, " +
				"also for many requests in one millisecond. It remembers each admitted unit, in at most 10 bytes " +
				"from a hundred units on.",
			params: []param{paramKey, paramWindow, {"max", "units admitted in any window, at most 1000000"}, paramCost,
				paramPartial, paramFrom, paramID},
			cost: "O(log n) in the units remembered",
			shown: []example{
				{"RL.SLIDING sms:42 1h 2", "1 1 0 3600000 2", "one of two"},
				{"RL.SLIDING sms:42 1h 2", "1 0 0 3600000 2", "two of two"},
				{"RL.SLIDING sms:42 1h 2", "0 0 3600000 3600000 2", "fits when the first is an hour old"},
			},
			plan: planLimit(engine.SlidingLog, limits.Partial),
		},
		{
			name: "RL.SLIDINGCOUNTER", arity: -4, syntax: "key window max [COST n] [PARTIAL] [FROM address] [ID token]",
			summary: "Count over about the last window, from two counters",
			details: "The units of this window count in full. The units of the previous window count with the share " +
				"of it that the last `window` still covers. " +
				"Its memory is constant for any maximum. It is exact while requests come evenly.",
			params: []param{paramKey, paramWindow, paramMax, paramCost, paramPartial, paramFrom, paramID},
			shown: []example{
				{"RL.SLIDINGCOUNTER api:42 1m 1000", "1 999 0 * 1000", "idle after this window and the next"},
			},
			plan: planLimit(engine.SlidingCounter, limits.Partial),
		},
	}
}

// guardCommands limit concurrent work and repeated failures.
func guardCommands() []*command {
	return []*command{
		{
			name: "RL.ACQUIRE", arity: -4, syntax: "key max ttl [HOLDER id] [COST n] [FROM address] [ID token]",
			summary: "Take a slot: at most so many at once",
			details: "At most `max` units are taken at the same time. A holder gives its slot back with " +
				"`RL.RELEASE`, keeps it longer with `RL.RENEW`, and loses it `ttl` after its last call, so a " +
				"holder that dies leaks nothing. Acquiring again with a live holder id and the same `COST` is a " +
				"renewal, so a retry is " +
				"safe. Without `HOLDER` the server makes an id (with `ID` it is the token).",
			params: []param{paramKey, {"max", "units taken at once"},
				{"ttl", "a duration; 0: the slot stays taken until it is released"},
				{"HOLDER id", "names the holder, 1 to 64 bytes"}, paramCost, paramFrom, paramID},
			reply: "The five integers and, sixth, the holder id. `retry_after_ms` of a denial is the time until " +
				"enough slots expire for all units of the request.",
			shown: []example{
				{"RL.ACQUIRE job:export 2 30s HOLDER a", "1 1 0 30000 2 a", "the first of two slots"},
				{"RL.ACQUIRE job:export 2 30s HOLDER b", "1 0 0 30000 2 b", "the second"},
				{"RL.ACQUIRE job:export 2 30s HOLDER c", "0 0 30000 30000 2 c",
					"none left, one runs out in 30 s at the latest"},
				{"RL.RELEASE job:export a", "1", "a is done"},
				{"RL.ACQUIRE job:export 2 30s HOLDER c", "1 0 0 30000 2 c", "now c gets its slot"},
			},
			cost: "O(n) in the holders of the key",
			plan: planAcquire, answer: answerAcquire,
		},
		{
			name: "RL.STRIKE", arity: -5,
			syntax: "key window threshold [DELAY] penalty [threshold [DELAY] penalty ...] [ATTEMPTS] [EXTEND] " +
				"[COST n] [FROM address] [ID token]",
			summary: "Count failures and deny with growing penalties",
			details: "Counts strikes over a sliding window. The strike that reaches a threshold starts that step's " +
				"penalty and is itself denied; strikes " +
				"during a penalty are denied and not counted. Ask with `COST 0` before the attempt, strike after a " +
				"failure, and forgive with " +
				"`RL.RESET` after a success.\n\n" +
				"With `ATTEMPTS` a strike is an attempt that begins. It counts as a failure unless it is forgiven. " +
				"Begin with `RL.STRIKE`, try when `allowed` is 1, and after a success " +
				"send `RL.RESET`. The attempt that reaches a threshold is admitted, and the penalty applies to all " +
				"others. So the last threshold bounds the attempts that run, " +
				"also when many begin at the same time. An attempt whose program dies counts as a failure.\n\n" +
				"A step with `DELAY` denies no attempt: from its threshold on, `retry_after_ms` of an admitted " +
				"strike is how long to delay the response.",
			params: []param{paramKey, {"window", "how long a strike counts: a duration up to 366 days"},
				{"threshold", "strikes in the window, ascending from step to step; up to 16 steps"},
				{"penalty", "how long the key is then denied: a duration"},
				{"DELAY", "the duration is a delay of the response instead"},
				{"ATTEMPTS", "a strike is an attempt that begins, not a failure that is reported"},
				{"EXTEND", "strikes during a penalty count too, up to the last threshold, and restart the penalty"},
				{"COST n", "the number of strikes that this request counts, 1 unless given; 0 reads without counting"},
				paramFrom, paramID},
			reply: "The five integers; `remaining` is the strikes left before the last step, `limit` the " +
				"last threshold.",
			cost: "O(log n) in the strikes remembered",
			shown: []example{
				{"RL.STRIKE auth:42 15m 2 2s 4 5m COST 0", "1 4 0 0 4", "may this login be tried? Yes"},
				{"RL.STRIKE auth:42 15m 2 2s 4 5m", "1 3 0 900000 4", "it failed: the first strike"},
				{"RL.STRIKE auth:42 15m 2 2s 4 5m", "0 2 2000 900000 4", "the second starts a penalty of 2 s"},
				{"RL.STRIKE auth:42 15m 2 2s 4 5m COST 0", "0 2 2000 900000 4", "not now"},
				{"RL.RESET auth:42", "1", "the right password in the end: forgiven"},
				{"RL.STRIKE auth:43 15m 2 DELAY 2s 3 15m ATTEMPTS", "1 2 0 900000 3", "an attempt begins"},
				{"RL.STRIKE auth:43 15m 2 DELAY 2s 3 15m ATTEMPTS", "1 1 2000 900000 3",
					"another: delay its response for 2 s"},
				{"RL.STRIKE auth:43 15m 2 DELAY 2s 3 15m ATTEMPTS", "1 0 2000 900000 3",
					"the last one that may be tried"},
				{"RL.STRIKE auth:43 15m 2 DELAY 2s 3 15m ATTEMPTS", "0 0 900000 900000 3", "locked for 15 minutes"},
			},
			plan: planLimit(engine.Strike, limits.Attempts|limits.Extend),
		},
	}
}

// decisionDefaults completes the fields that all decisions share.
func decisionDefaults(commands []*command, group string) []*command {
	for _, cmd := range commands {
		cmd.group, cmd.flags, cmd.keys = group, decideFlags, oneKey
		if cmd.answer == nil {
			cmd.answer, cmd.reply = answerFive, orElse(cmd.reply, fiveReply)
		}
	}
	return commands
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// decision writes the five integers of a decision as an array with more further elements.
func (s *Session) decision(more int, d *engine.Decision) {
	s.Decision(more, d.Allowed, d.Remaining, d.RetryMs, d.ResetMs, d.Limit)
}

func answerFive(s *Session, _ []engine.Op, ds []engine.Decision) {
	s.decision(0, &ds[0])
}

func answerAcquire(s *Session, ops []engine.Op, ds []engine.Decision) {
	s.decision(1, &ds[0])
	s.BulkBytes(ops[0].Text)
}

// planLimit returns the plan of a decision under the limit that its arguments give.
func planLimit(a engine.Algorithm, options limits.Option) func(*Session, [][]byte) error {
	options |= limits.Cost | limits.From | limits.ID
	return func(s *Session, args [][]byte) error {
		op, err := s.take(args[1], a)
		if err != nil {
			return err
		}
		rest, err := s.reader.Args(&op.Limit, args[2:])
		if err != nil {
			return err
		}
		if len(rest) == 0 && op.Limit.Mode == engine.Aligned {
			return nil // most decisions
		}
		_, zone, err := arg.Options(op, rest, options)
		if err == nil && op.Limit.Mode.Calendar() {
			op.Calendar, err = s.srv.calendars.At(s.srv.Limiter.Now(), op.Limit.Mode, zone)
		}
		return err
	}
}

func planAcquire(s *Session, args [][]byte) error {
	op, err := s.take(args[1], engine.Concurrency)
	if err != nil {
		return err
	}
	if op.Limit.Max, op.TTLNs, err = limits.Slots(args[2:]); err != nil {
		return err
	}
	seen, _, err := arg.Options(op, args[4:], limits.Holder|limits.Cost|limits.From|limits.ID)
	switch {
	case err != nil:
		return err
	case seen&limits.Holder != 0:
	case seen&limits.ID != 0:
		op.Text = op.ID // a repeated request must name the same holder
	default:
		op.Text = s.batch.NewHolder()
	}
	return nil
}
