package ledger

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Verb is the kind of an operation.
type Verb uint8

const (
	Check   Verb = iota // take Units from every pair, or nothing; 0 is a dry run
	Reserve             // the same, for the hold ID
	Commit              // commit the hold ID: Units were used
	Cancel              // cancel the hold ID
	Set                 // give the policy of the pair the limits Maxima; none: delete it
	Extend              // hold Units more under the hold ID; Seq is the number of the extension

	// The others concern one counter, a limit of Max units that never refills.
	Take    // take Units, or with Partial as many as fit; 0 looks
	Refund  // give Units back
	Reset   // forget the counter
	Inspect // read the units that are left
	Exists  // read whether units are in use
)

func (v Verb) String() string {
	return [...]string{"check", "reserve", "commit", "cancel", "set", "extend", "take", "refund", "reset", "inspect",
		"exists"}[v]
}

// Pair is a policy and the key it is asked about.
type Pair struct{ Policy, Key string }

func (p Pair) String() string { return p.Policy + " " + p.Key }

// Op is one operation as its client saw it. An operation that was repeated until its answer lasts from the first call
// to the last return. A history omits operations that were certainly not applied.
type Op struct {
	Client int
	Verb   Verb
	Pairs  []Pair  // of a counter: its key
	ID     string  // of the hold
	Units  int64   // requested, used or given back
	TTLNs  int64   // Reserve
	Maxima []int64 // Set: of limits that never refill
	Reset  bool    // Set: forget the usage
	Notify []int64 // Set: thresholds of each limit, in percent
	Record bool    // Set: the ends of holds are events
	Else   []int   // Check, Reserve: the pairs that begin further alternatives, ascending
	Split  bool    // with Else: several alternatives may pay together
	Seq    int64   // Extend
	Keep   bool    // Commit: Units were used so far, and the rest stays held

	Max     int64  // of the counter
	Partial bool   // Take: as many units as fit
	At      string // Inspect and Exists: the node that was asked

	CallNs, ReturnNs int64 // on one clock of all clients
	Unknown          bool  // it may have been applied at any time after the call, or not at all
	Answer           Answer
	elsewhere        bool // the answer comes from another group; see LinearizableByGroup
}

// Status is the kind of an answer.
type Status uint8

const (
	OK         Status = iota
	NoPolicy          // one of the policies does not exist
	NoHold            // the hold does not exist
	OtherTerms        // the hold was committed with another number of units, or it was extended otherwise
	HoldEnded         // the hold was committed or cancelled
	OutOfOrder        // the extension has another number than the next, which is in Limit
)

// Answer is the content of a reply. Check fills all fields, from the limit that binds. Reserve does not name its
// policy. Commit sets Left, and Cancel sets Allowed. Set puts the policy's version in Left. After a deletion Allowed
// says whether the policy existed. Extend answers as Reserve. The operations of a counter set Left: Reset to the
// number of counters that were forgotten, Exists to the number that exist. Take also sets Allowed.
type Answer struct {
	Status  Status
	Allowed int64 // 1 or 0; Take: the units granted
	Left    int64 // units of the limit that binds
	Limit   int64 // maximum of that limit
	Policy  string
	// Paid has the sum of the units, and for each alternative its first policy and the units that it paid: by a
	// Check or a Reserve with Else, and for the hold so far by an Extend, which gives only the sum of a hold without
	// Else.
	Paid string
}

// Granted returns the units that a Take certainly received.
func (o *Op) Granted() int64 {
	if o.Verb == Take && !o.Unknown {
		return o.Answer.Allowed
	}
	return 0
}

// deadlineNs returns the time by which the operation has certainly happened: never, if its outcome is unknown.
func (o *Op) deadlineNs() int64 {
	if o.Unknown {
		return math.MaxInt64
	}
	return o.ReturnNs
}

// Doubt marks the outcome of some operations as unknown. Such an operation was sent several times under one ID. Its
// answer was that no hold exists, or that no units are left. The state may have changed before a delayed attempt
// arrives. Every other answer is the answer to all attempts.
func (o *Op) Doubt() {
	takes := o.Verb == Reserve || o.Verb == Extend || o.Verb == Check || o.Verb == Take
	o.Unknown = o.Unknown || o.Verb == Commit && o.Answer.Status == NoHold || takes && o.Answer.Allowed == 0
}

func (o Op) String() string {
	result := "unknown"
	if !o.Unknown {
		result = fmt.Sprintf("%+v", o.Answer)
	}
	terms := ""
	if o.Verb == Extend {
		terms = fmt.Sprint(" seq ", o.Seq)
	}
	if len(o.Else) > 0 {
		terms = fmt.Sprintf(" else at %v, split %v", o.Else, o.Split)
	}
	if o.Keep {
		terms = " keep"
	}
	if o.Verb == Set {
		terms = fmt.Sprintf(" to %v, reset %v", o.Maxima, o.Reset)
	}
	if o.Partial {
		terms = " partial"
	}
	if o.At != "" {
		terms = " at " + o.At
	}
	return fmt.Sprintf("%12.6f .. %12.6f s  client %-3d %s %d of %v %s%s: %s", time.Duration(o.CallNs).Seconds(),
		time.Duration(o.ReturnNs).Seconds(), o.Client, o.Verb, o.Units, o.Pairs, o.ID, terms, result)
}

// maxShown is how many operations of a counter an error quotes.
const maxShown = 40

// Show formats a history with one operation a line, without dry runs. A trail of policies has a few hundred operations,
// and any of them may be the wrong one. Of a counter it shows the last ones.
func Show(ops []Op) string {
	var b strings.Builder
	if len(ops) > 0 && ops[0].Verb >= Take {
		ops = ops[max(0, len(ops)-maxShown):]
	}
	for _, op := range ops {
		if op.Verb != Check || op.Units > 0 {
			fmt.Fprintf(&b, "  %v\n", op)
		}
	}
	return b.String()
}
