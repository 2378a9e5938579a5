package ledger

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Verb is what an operation asks for.
type Verb uint8

const (
	Check   Verb = iota // take Units from every pair, or nothing; 0 looks
	Reserve             // the same, for the hold ID
	Commit              // settle the hold ID: Units were used
	Cancel              // call the hold ID off
	Set                 // give the policy of the one pair the limits Maxima; none: delete it
)

func (v Verb) String() string {
	return [...]string{"check", "reserve", "commit", "cancel", "set"}[v]
}

// Pair is a policy and the key it is asked about.
type Pair struct{ Policy, Key string }

func (p Pair) String() string { return p.Policy + " " + p.Key }

// Op is one operation as its client saw it. One that was repeated until it was answered
// runs from the first call to the last return. What was certainly not carried out is no
// part of a history.
type Op struct {
	Client int
	Verb   Verb
	Pairs  []Pair
	ID     string  // of the hold
	Units  int64   // asked for, or used
	TTLNs  int64   // Reserve
	Maxima []int64 // Set: of limits that never refill
	Reset  bool    // Set: forget the usage

	CallNs, ReturnNs int64 // on one clock of all clients
	Unknown          bool  // it may have been carried out, at any time after the call, or not
	Answer           Answer
}

// Status is how an answer begins.
type Status uint8

const (
	OK         Status = iota
	NoPolicy          // one of the policies does not exist
	NoHold            // nor does the hold
	OtherTerms        // the hold was settled with another figure
)

// Answer is what a reply says. Check fills all of it, from the limit that binds; Reserve
// does not name its policy; Commit says Left; Cancel says Allowed; Set says in Left the
// policy's version, of a deleted one in Allowed that there was one.
type Answer struct {
	Status  Status
	Allowed int64 // 1 or 0
	Left    int64 // units of the limit that binds
	Limit   int64 // and its maximum
	Policy  string
}

// deadlineNs is when the operation has certainly happened: never, if unknown.
func (o *Op) deadlineNs() int64 {
	if o.Unknown {
		return math.MaxInt64
	}
	return o.ReturnNs
}

// Doubt makes the end of an operation unknown that was sent several times under one ID
// and was told that there is no hold, or no room for one. That may have become otherwise
// before a try arrives that was held up on its way. Every other answer stays the answer
// to all tries.
func (o *Op) Doubt() {
	o.Unknown = o.Unknown || o.Verb == Commit && o.Answer.Status == NoHold || o.Verb == Reserve && o.Answer.Allowed == 0
}

func (o Op) String() string {
	result := "unknown"
	if !o.Unknown {
		result = fmt.Sprintf("%+v", o.Answer)
	}
	terms := ""
	if o.Verb == Set {
		terms = fmt.Sprintf(" to %v, reset %v", o.Maxima, o.Reset)
	}
	return fmt.Sprintf("%12.6f .. %12.6f s  client %-3d %s %d of %v %s%s: %s", time.Duration(o.CallNs).Seconds(),
		time.Duration(o.ReturnNs).Seconds(), o.Client, o.Verb, o.Units, o.Pairs, o.ID, terms, result)
}

// Show is a history for people, one operation a line, without those that only looked. A
// trail has few hundred, and what is wrong may be any of them.
func Show(ops []Op) string {
	var b strings.Builder
	for _, op := range ops {
		if op.Verb != Check || op.Units > 0 {
			fmt.Fprintf(&b, "  %v\n", op)
		}
	}
	return b.String()
}
