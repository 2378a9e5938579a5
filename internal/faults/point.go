package faults

// Point is a failpoint: a place between two steps of a node at which the order of events matters. A test that waits
// there lets elections and transfers happen between the two steps.
type Point int

// These are the failpoints.
const (
	// BeforeProposal: this leader has taken a batch for its term, and has not stamped it.
	BeforeProposal Point = iota
	// BeforeForward: this follower is about to send a batch to the leader.
	BeforeForward
	// DuringDenial: this leader may have begun a ReadIndex round for a denial, and has not read its state yet.
	DuringDenial
	// BeforeLeadership: this leader has applied what was committed, and does not serve yet.
	BeforeLeadership
	// BeforeApply: an entry is committed, and this node has not applied it yet.
	BeforeApply
	// BeforeImage: this leader is about to send an image to a follower.
	BeforeImage
)
