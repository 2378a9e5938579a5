package engine

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/weir-project/weir/engine/internal/arith"
	"github.com/weir-project/weir/engine/internal/store"
)

// The extensions of a hold have the numbers 1, 2, 3 and so on. A repetition of an extension is told by its number, as
// that of any request by its ID. A denied extension has no number: the client may send the same number again.

// extensionID precedes the number in the ID of an OpExtend. It keeps the ID apart from those of other commands.
const extensionID = "SEQ "

// MaxExtensions is the greatest number of an extension.
const MaxExtensions = MaxUnits

// ExtensionID returns the ID of an OpExtend with a number of 1..MaxExtensions.
func ExtensionID(number int64) []byte { return strconv.AppendInt([]byte(extensionID), number, 10) }

// Extension returns the number of an OpExtend, or 0 if its ID is not the result of ExtensionID.
func (op *Op) Extension() int64 {
	digits, _ := bytes.CutPrefix(op.ID, []byte(extensionID))
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil || n < 1 || n > MaxExtensions || !bytes.Equal(op.ID, ExtensionID(n)) {
		return 0
	}
	return n
}

// NextExtension returns the number that the next extension of the hold must have, if the status is OutOfOrder.
func (d *Decision) NextExtension() int64 { return d.Limit }

// extendHold carries out an OpExtend. A denied extension changes nothing.
func (s *shard) extendHold(op *Op, d *Decision) bool {
	_, c := s.t.openHold(op.Key)
	if !c.Live {
		d.Status = NoHold
		return false
	}
	x := store.ReadHold(c.Entry.State())
	if x.Phase != store.HoldOpen || s.NowNs >= x.EndsNs {
		d.Status = HoldEnded
		return false
	}
	if next := x.Extensions + 1; op.Extension() != next {
		*d = Decision{Status: OutOfOrder, Limit: next}
		return false
	}
	keepPairs(&x)
	look := Op{
		Code: OpCheck, Cost: op.Cost, Partial: op.Partial && op.Cost > 0, High: x.High,
		Text: x.Pairs[0].Policy, Key: x.Pairs[0].Key, ID: op.Key, Else: x.Else,
	}
	for _, p := range x.Pairs[1:] {
		look.Also = append(look.Also, Pair{p.Policy, p.Key})
	}
	h, at := s.t.find(look.Key)
	f := funding{k: &at.checker, s: at, op: &look}
	if !f.admitsMore(h, op.Key, &x, d) {
		return false
	}
	defer f.done()
	before := x
	if !s.growHold(&c, &x, f.total, x.Extensions+1) {
		d.Status = OutOfMemory
		return false
	}
	if f.spend(d, nil); d.Status != OK {
		before.Write(c.Entry.State())
		return false
	}
	for i := range x.Sources {
		x.Sources[i].Taken += f.units[i]
	}
	ttlNs := op.TTLNs
	if ttlNs == 0 {
		ttlNs = x.TTLNs
	}
	x.EndsNs = arith.AddNs(s.NowNs, ttlNs)
	x.ForgetNs = arith.AddNs(x.EndsNs, s.t.opts.IDLifetimeNs)
	x.Records = x.Records || s.records(x.Pairs)
	s.t.eachAllocation(&x, func(s *shard, c *store.Cell, _ int) { s.RenewAllocations(c, op.Key, x.EndsNs) })
	s.allocateMore(&f, op.Key, &x)
	s.writeHold(&c, &x)
	return true
}

// allocateMore records an extension in the limiters that counted it. One that did not, because its policy is disabled
// or a shadow without room, cannot tell which units of the hold it counts, so it keeps what it has.
func (s *shard) allocateMore(f *funding, id []byte, x *store.Hold) {
	missed := *x
	missed.Pairs = slices.Clone(x.Pairs)
	for i := range x.Pairs {
		if f.units[x.Else.Of(i)] > 0 {
			x.Pairs[i].Took = 0
		} else {
			missed.Pairs[i].Took = 0
		}
	}
	f.allocate(id, x, false)
	for i := range missed.Pairs {
		missed.Pairs[i].Took &^= x.Pairs[i].Took
	}
	s.t.eachAllocation(&missed, func(s *shard, c *store.Cell, _ int) { s.CompleteAllocations(c, id, 0) })
}

// admitsMore reports whether the policies of a hold admit more units, and divides them among its alternatives. If not,
// it fills in the answer. h is the hash of the first key.
func (f *funding) admitsMore(h uint64, id []byte, x *store.Hold, d *Decision) bool {
	k := f.k
	if !k.resolve(f.s, h, f.op, d) {
		return false
	}
	if k.strikes {
		d.Status = NotRefundable
		return false
	}
	if f.op.Cost == 0 { // this begins the ttl again, and answers for the alternative that pays next
		f.groups, f.last = k.groups, x.LastSource()
		return true
	}
	admitted := f.fund(d)
	if admitted && f.total > MaxUnits-x.Total() {
		d.Status = Overflow
	} else if admitted && f.total > 0 {
		d.Status = f.refusal(id)
	}
	if admitted = admitted && d.Status == OK; !admitted {
		f.done()
	}
	return admitted
}

// heldText returns what was taken for a hold so far: see Decision.Paid.
func (s *shard) heldText(id []byte) string {
	_, c := s.t.openHold(id)
	if !c.Live {
		return ""
	}
	x := store.ReadHold(c.Entry.State())
	if x.Else == 0 {
		return strconv.FormatInt(x.Total(), 10)
	}
	return sourcesText(&x, false)
}

// sourcesText returns what the sources of a hold have paid so far, or at first: see Decision.Paid. It is empty for a
// hold without alternatives.
func sourcesText(x *store.Hold, first bool) string {
	if x.Else == 0 {
		return ""
	}
	var units store.BySource
	for i, s := range x.Sources {
		if units[i] = s.Taken; first {
			units[i] = s.Reserved
		}
	}
	return paidText(x.Else, units, func(i int) []byte { return x.Pairs[i].Policy })
}
