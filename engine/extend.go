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
		Text: x.Pairs[0].Policy, Key: x.Pairs[0].Key,
	}
	for _, p := range x.Pairs[1:] {
		look.Also = append(look.Also, Pair{p.Policy, p.Key})
	}
	h, at := s.t.find(look.Key)
	k := &at.checker
	cost, fits := k.admitsMore(at, h, &look, &x, d)
	if !fits {
		return false
	}
	before := x
	if !s.growHold(&c, &x, cost, x.Extensions+1) {
		d.Status = OutOfMemory
		return false
	}
	if k.take(at, &look, cost, d); d.Status != OK {
		before.Write(c.Entry.State())
		return false
	}
	ttlNs := op.TTLNs
	if ttlNs == 0 {
		ttlNs = x.TTLNs
	}
	x.EndsNs = arith.AddNs(s.NowNs, ttlNs)
	x.ForgetNs = arith.AddNs(x.EndsNs, s.t.opts.IDLifetimeNs)
	s.t.eachAllocation(&x, func(s *shard, c *store.Cell) { s.RenewAllocations(c, op.Key, x.EndsNs) })
	if cost > 0 {
		k.allocate(op.Key, cost, &x)
	}
	s.writeHold(&c, &x)
	return true
}

// admitsMore reports whether the policies of a hold admit look, and how many units they grant. If not, it fills in the
// answer. home is the shard of the first key, whose hash is h.
func (k *checker) admitsMore(home *shard, h uint64, look *Op, x *store.Hold, d *Decision) (cost int64, fits bool) {
	if !k.resolve(home, h, look, d) {
		return 0, false
	}
	if slices.ContainsFunc(k.parts, func(x part) bool { return x.strikes() }) {
		d.Status = NotRefundable
		return 0, false
	}
	if cost, fits = k.look(look); !fits && look.Cost > 0 {
		k.deny(look, d)
		return 0, false
	}
	switch {
	case cost > MaxUnits-x.Total():
		d.Status = Overflow
	case cost > 0 && k.full():
		d.Status = TooManyHolders
	}
	return cost, d.Status == OK
}

// heldText returns how many units were taken for a hold so far, as a decimal number.
func (s *shard) heldText(id []byte) string {
	_, c := s.t.openHold(id)
	if !c.Live {
		return ""
	}
	x := store.ReadHold(c.Entry.State())
	return strconv.FormatInt(x.Total(), 10)
}
