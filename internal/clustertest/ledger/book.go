package ledger

import "slices"

// book is the state of a correct server. It is immutable: an operation that changes something returns another book.
type book struct {
	policies []policy // by entry.policies
	used     []int64  // units, by entry.pairs
	holds    []hold   // by entry.hold
}

// policy is the current terms of a policy. Both limits of a policy with two limits count the same units.
type policy struct {
	version int64
	terms   int // index.terms; 0: no such policy
}

type phase uint8

const (
	none phase = iota // never created, or denied
	open
	settled
	cancelled
)

type hold struct {
	phase      phase
	sources    [maxAlternatives]source
	made       Answer // the answer to Reserve
	actual     int64  // committed units, or with Keep those used so far
	left       int64  // the answer to Commit
	extended   int    // extensions
	extensions [maxExtensions]extension
}

const (
	maxAlternatives = 3
	// maxExtensions is how often the clients extend a hold.
	maxExtensions = 4
)

// source is what a hold took under one alternative.
type source struct{ taken, used int64 }

// extension is an extension that was carried out, without what its answer says of the hold.
type extension struct {
	units  int64
	answer Answer
}

// equal reports whether two books are indistinguishable.
func (b *book) equal(o *book) bool {
	return slices.Equal(b.used, o.used) && slices.Equal(b.policies, o.policies) && slices.Equal(b.holds, o.holds)
}

// hash combines the numbers that change most.
func (b *book) hash() (h uint64) {
	for _, n := range b.used {
		h = h*1_000_003 + uint64(n)
	}
	for _, p := range b.policies {
		h = h*1_000_003 + uint64(p.version)
	}
	return h
}

// charged returns a book in which more units of the pairs of each alternative are in use.
func (b *book) charged(e *entry, units shares) *book {
	next := *b
	next.used = slices.Clone(b.used)
	for i := range e.alternatives() {
		first, end := e.alternative(i)
		for _, p := range e.pairs[first:end] {
			next.used[p] += units[i]
		}
	}
	return &next
}

// with returns a book with another hold at an index.
func (b *book) with(place int, h hold) *book {
	next := *b
	next.holds = slices.Clone(b.holds)
	next.holds[place] = h
	return &next
}

// offer is the remaining units of one pair, by its tightest limit. It is negative after a commit beyond the limit.
type offer struct {
	policy      string
	left, limit int64
}

// offers returns the offers of the pairs of an operation. It returns false if a policy is missing.
func (b *book) offers(e *entry) (offers []offer, ok bool) {
	for i, place := range e.pairs {
		p := b.policies[e.policies[i]]
		if p.terms == 0 {
			return nil, false
		}
		most := slices.Min(e.index.terms[p.terms])
		offers = append(offers, offer{e.op.Pairs[i].Policy, most - b.used[place], most})
	}
	return offers, true
}

// decide reports whether units fit all offers, and which answers are right: the answer of a pair with the least left,
// or of any pair that denies.
func decide(offers []offer, units int64) (fits bool, answers []Answer) {
	least := offers[0].left
	for _, o := range offers {
		least = min(least, o.left)
	}
	fits = least >= units
	for _, o := range offers {
		switch {
		case fits && o.left == least:
			answers = append(answers, Answer{Allowed: 1, Left: o.left - units, Limit: o.limit, Policy: o.policy})
		case !fits && o.left < units:
			answers = append(answers, Answer{Left: max(o.left, 0), Limit: o.limit, Policy: o.policy})
		}
	}
	return fits, answers
}
