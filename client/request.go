package client

import (
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"github.com/weir-project/weir/engine"
)

// Request asks for units of a key under a rule. Rule and Key are required.
type Request struct {
	Rule *Rule
	Key  string // the caller or the resource that is limited, 1 to 512 bytes
	// Cost is the units asked for; 0 means 1.
	Cost int64
	// Peek returns the decision without taking anything.
	Peek bool
	// Partial takes as many units as are available, up to Cost; Decision.Granted is how many. It works for token
	// buckets, windows and policies.
	Partial bool
	// MaxWait admits a request whose tokens become available within that time. The caller must delay the request
	// by Decision.RetryAfter. It works for token buckets only.
	MaxWait time.Duration
	// High lets the request take units that a policy reserves for high priority.
	High bool
	// From is the address that the request comes from. A block everywhere of this address denies the request,
	// whatever its key is. An invalid address means none.
	From netip.Addr
	// Also are more policies with their keys, at most 15. The request takes units under all of them and under Rule,
	// or under none.
	Also []Pair
	// Else are up to three alternatives that may pay, each with one or more policies and their keys. The first
	// alternative that admits the whole cost pays; Rule with Also is asked first. See Decision.Paid.
	Else [][]Pair
	// Split lets several alternatives pay the cost together, the first ones as much as they can.
	Split bool
	// ID is an idempotency key of up to 64 bytes: the same ID on the same key within a minute returns the first
	// answer. See Options.IDs.
	ID string
	// ExpireTake makes a hold that expires keep its units: they count as used. It works for Reserve only.
	ExpireTake bool

	holder string        // of Acquire: the holder of the slot
	hold   time.Duration // of Reserve: how long the units are held
}

// Pair is a policy and the key that it decides about.
type Pair struct{ Policy, Key string }

// check returns an error if the request does not fit its rule.
func (q *Request) check() error {
	wrong := ""
	switch r := q.Rule; {
	case r == nil:
		wrong = "Rule is missing"
	case r.err != nil:
		return r.err
	case q.Key == "" || len(q.Key) > engine.MaxKeyLen:
		wrong = fmt.Sprintf("the key must have 1 to %d bytes, not %d", engine.MaxKeyLen, len(q.Key))
	case q.Cost < 0 || q.Cost > engine.MaxUnits:
		wrong = fmt.Sprintf("the cost must be 0 to 2^53, not %d", q.Cost)
	case len(q.ID) > engine.MaxIDLen:
		wrong = fmt.Sprintf("the ID must have at most %d bytes, not %d", engine.MaxIDLen, len(q.ID))
	case (q.High || len(q.Also) > 0) && r.policy == "":
		wrong = "High and Also require a policy as the rule"
	case len(q.others()) >= engine.MaxPairs:
		wrong = fmt.Sprintf("a check can name at most %d policies", engine.MaxPairs)
	case q.MaxWait < 0 || q.MaxWait > 0 && r.kind != engine.TokenBucket:
		wrong = "MaxWait requires a token bucket, and must not be negative"
	case q.Partial && (q.MaxWait > 0 || r.kind == engine.LeakyBucket || r.kind == engine.Concurrency ||
		r.kind == engine.Strike):
		wrong = "Partial requires a token bucket, a window or a policy, and excludes MaxWait"
	case q.hold > 0 && (r.policy == "" || q.Partial || q.Peek):
		wrong = "a hold requires a policy, and excludes Peek and Partial"
	case q.ExpireTake && q.hold == 0:
		wrong = "ExpireTake requires Reserve"
	case r.notify != nil:
		wrong = "Notify is for the limits of a policy"
	case r.kind == engine.Concurrency && q.holder == "":
		wrong = "Slots require Acquire"
	}
	if wrong == "" {
		wrong = q.wrongElse()
	}
	if wrong != "" {
		return fmt.Errorf("%w: %s", ErrBadRequest, wrong)
	}
	return nil
}

// cost returns the units asked for.
func (q *Request) cost() int64 {
	switch {
	case q.Peek:
		return 0
	case q.Cost == 0:
		return 1
	}
	return q.Cost
}

// repeatable reports whether the request counts once however often it is sent. An ID ensures that. So does a holder,
// because a repeated RL.ACQUIRE renews the holder's slot.
func (q *Request) repeatable() bool { return q.ID != "" || q.holder != "" }

// usualOptionArgs is the capacity for an ID. A request with more options allocates more.
const usualOptionArgs = 2

// args returns the request as a command.
func (q *Request) args() []any {
	if q.hold > 0 {
		return q.holdArgs()
	}
	r := q.Rule
	args := make([]any, 0, len(r.head)+1+len(r.words)+2*len(q.Also)+usualOptionArgs)
	args = append(append(append(args, r.head...), q.Key), r.words...)
	for _, p := range q.Also {
		args = append(args, p.Policy, p.Key)
	}
	return q.options(q.alternatives(args))
}

// holdArgs returns a request of Reserve as a command.
func (q *Request) holdArgs() []any {
	args := []any{"RL.RESERVE", q.Rule.policy, q.Key, strconv.FormatInt(q.cost(), 10), duration(q.hold)}
	for i, p := range q.Also {
		if i == 0 {
			args = append(args, "AND")
		}
		args = append(args, p.Policy, p.Key)
	}
	args = q.alternatives(args)
	if q.High {
		args = append(args, "PRIORITY", "high")
	}
	if q.From.IsValid() {
		args = append(args, "FROM", q.From.String())
	}
	if q.ExpireTake {
		args = append(args, "EXPIRE", "take")
	}
	return append(args, "ID", q.ID)
}

func (q *Request) options(args []any) []any {
	if n := q.cost(); n != 1 {
		args = append(args, "COST", strconv.FormatInt(n, 10))
	}
	if q.Partial {
		args = append(args, "PARTIAL")
	}
	if q.MaxWait > 0 {
		args = append(args, "MAXWAIT", wholeMs(q.MaxWait))
	}
	if q.High {
		args = append(args, "PRIORITY", "high")
	}
	if q.From.IsValid() {
		args = append(args, "FROM", q.From.String())
	}
	if q.holder != "" {
		args = append(args, "HOLDER", q.holder)
	}
	if q.ID != "" {
		args = append(args, "ID", q.ID)
	}
	return args
}
