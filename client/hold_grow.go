package client

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/internal/millis"
)

// Extension is more units for a hold whose request runs on.
type Extension struct {
	// Number counts the extensions of the hold: 1, 2, 3 and so on. The same number again gets the first answer, and
	// takes nothing more. A denied extension has no number: the next one has it.
	Number int64
	// Units is how many more units to hold; 0 only begins the ttl again.
	Units int64
	// TTL is when the hold ends by itself from now on; 0: the ttl of Reserve.
	TTL time.Duration
	// Partial takes as many units as fit, if at least one does; Decision.Granted is how many.
	Partial bool
}

// Extend takes more units under the policies and keys of the hold, all or none, and begins its ttl again. held is how
// many units were taken for the hold so far. A denial changes nothing. The error is ErrRefused if the hold has ended,
// or if the number is not the next one.
func (h *Hold) Extend(ctx context.Context, x Extension) (d Decision, held int64, err error) {
	if x.Units < 0 || x.Units > engine.MaxUnits || x.Number < 1 || x.Number > engine.MaxExtensions ||
		x.TTL < 0 || int64(x.TTL) > engine.MaxWindowNs {
		return d, 0, fmt.Errorf("%w: an extension has a number from 1 on, 0 to 2^53 units and a ttl of at most "+
			"366 days",
			ErrBadRequest)
	}
	q := &Request{Rule: &Rule{name: "RL.EXTEND"}, Cost: x.Units, Peek: x.Units == 0, Partial: x.Partial && x.Units > 0}
	if h.local {
		d, held = h.extendHere(q, &x)
		return d, held, nil
	}
	args := []any{"RL.EXTEND", h.id, strconv.FormatInt(x.Units, 10), "SEQ", strconv.FormatInt(x.Number, 10)}
	if x.TTL > 0 {
		args = append(args, "TTL", duration(x.TTL))
	}
	if x.Partial {
		args = append(args, "PARTIAL")
	}
	reply, err := h.client.do(ctx, true, args...)
	if err != nil {
		return d, 0, err
	}
	if d, err = decisionOf(q, reply); err == nil {
		if list := reply.([]any); len(list) > 5 { // after the integers of the decision
			held, _ = list[5].(int64)
		}
	}
	return d, held, err
}

// extendHere extends a hold of the local limiter, or one that Open granted, which nothing counts.
func (h *Hold) extendHere(q *Request, x *Extension) (d Decision, held int64) {
	d = Decision{Allowed: true, Granted: x.Units, Source: FromFallback}
	if h.client.local == nil {
		return d, 0
	}
	op := engine.Op{Code: engine.OpExtend, Key: []byte(h.id), Cost: x.Units, TTLNs: int64(x.TTL), Partial: q.Partial,
		ID: engine.ExtensionID(x.Number)}
	op.Bind()
	answer := h.client.local.do(op)
	if answer.Status != engine.OK {
		return Decision{RetryAfter: maxProbePause, Source: FromFallback}, 0
	}
	d = decisionFrom(q, [5]int64{answer.Allowed, answer.Remaining, answer.RetryMs, answer.ResetMs, answer.Limit})
	d.Source = FromFallback
	held, _ = answer.Paid()
	return d, held
}

// Report reports the units that the request has used since Reserve, and the hold goes on. They are not given back any
// more. Report returns the units left of the limit with the fewest left, or -1 if that is not known.
func (h *Hold) Report(ctx context.Context, used int64) (left int64, err error) {
	if used < 0 || used > engine.MaxUnits {
		return 0, fmt.Errorf("%w: what was used must be 0 to 2^53, not %d", ErrBadRequest, used)
	}
	if !h.local {
		return h.client.number(ctx, true, "RL.COMMIT", h.id, used, "KEEP")
	}
	if h.client.local != nil {
		op := engine.Op{Code: engine.OpCommit, Key: []byte(h.id), Cost: used, Keep: true}
		if d := h.client.local.do(op); d.Status == engine.OK {
			return d.Remaining, nil
		}
	}
	return -1, nil
}

// OpenHold is a hold that is open.
type OpenHold struct {
	ID         string
	Held, Used int64         // units: not reported as used, and reported
	Ends       time.Duration // until it ends by itself
	Take       bool          // what is held then counts as used
}

// Holds lists open holds under a policy and a key. It looks at about count of them, at most 10,000, from a cursor on: 0
// at first, then next, until that is 0. A hold that is extended meanwhile may be listed twice.
func (c *Client) Holds(
	ctx context.Context, policy, key string, cursor uint64, count int,
) (list []OpenHold, next uint64, err error) {
	reply, err := c.do(ctx, true, "RL.HOLDS", policy, key, "CURSOR", strconv.FormatUint(cursor, 10), "COUNT", count)
	if err != nil {
		return nil, 0, err
	}
	page, ok := reply.([]any)
	if ok = ok && len(page) == 2; ok {
		text, _ := page[0].(string)
		next, err = strconv.ParseUint(text, 10, 64)
		rows, is := page[1].([]any)
		ok = is && err == nil
		for i := 0; ok && i < len(rows); i++ {
			var x OpenHold
			x, ok = openHoldOf(rows[i])
			list = append(list, x)
		}
	}
	if !ok {
		return nil, 0, fmt.Errorf("%w: to RL.HOLDS: %v", ErrReply, reply)
	}
	return list, next, nil
}

func openHoldOf(row any) (x OpenHold, ok bool) {
	list, _ := row.([]any)
	if len(list) < 5 {
		return x, false
	}
	var numbers [3]int64
	for i := range numbers {
		if numbers[i], ok = list[1+i].(int64); !ok {
			return x, false
		}
	}
	id, ok := list[0].(string)
	end, _ := list[4].(string)
	return OpenHold{id, numbers[0], numbers[1], millis.Duration(numbers[2]), end == "take"}, ok
}
