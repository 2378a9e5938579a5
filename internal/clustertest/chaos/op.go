package chaos

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Verb is the kind of an operation on a limiter.
type Verb uint8

const (
	Take    Verb = iota // units asked for
	Refund              // units given back
	Reset               // the limiter forgotten
	Inspect             // a read of what is left
	Exists              // a read of whether anything is used
)

func (v Verb) String() string { return [...]string{"take", "refund", "reset", "inspect", "exists"}[v] }

// Op is one operation as its client saw it. An operation that was repeated with its ID lasts from the first call to the
// last return. Histories omit operations that were certainly not applied.
type Op struct {
	Client  int
	Verb    Verb
	Partial bool   // Take: as many units as fit
	Units   int64  // asked for or given back; Take of 0 looks
	At      string // Inspect and Exists: the node that was asked

	CallNs, ReturnNs int64 // the clients' shared monotonic clock, from the start of the run
	Outcome          Outcome
	Granted          int64 // Take, answered: units admitted, 0 for a denial
	// Left is set in an answered operation: the units left after it. For Reset it is the number of limiters that were
	// forgotten, for Exists the number that exist.
	Left int64
}

// grants returns the units that this operation certainly received.
func (o *Op) grants() int64 {
	if o.Verb == Take && o.Outcome == Answered {
		return o.Granted
	}
	return 0
}

// deadlineNs returns the time by which the operation has certainly happened: never, if its outcome is unknown.
func (o *Op) deadlineNs() int64 {
	if o.Outcome == Unknown {
		return math.MaxInt64
	}
	return o.ReturnNs
}

func (o Op) String() string {
	partial := ""
	if o.Partial {
		partial = " partial"
	}
	result := o.Outcome.String()
	if o.Outcome == Answered {
		result = fmt.Sprintf("granted %d, left %d", o.Granted, o.Left)
	}
	if o.At != "" {
		result += " at " + o.At
	}
	return fmt.Sprintf("%12.6f .. %12.6f s  client %-3d %s %d%s: %s", time.Duration(o.CallNs).Seconds(),
		time.Duration(o.ReturnNs).Seconds(), o.Client, o.Verb, o.Units, partial, result)
}

// maxShownOps is how much of a history an error quotes. The artifacts contain the whole history.
const maxShownOps = 40

// show formats a history with one operation a line, cut at maxShownOps.
func show(ops []Op) string {
	var b strings.Builder
	for i, op := range ops {
		if i == maxShownOps {
			fmt.Fprintf(&b, "  ... and %d more\n", len(ops)-i)
			break
		}
		fmt.Fprintf(&b, "  %v\n", op)
	}
	return b.String()
}
