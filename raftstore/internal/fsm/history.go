package fsm

import (
	"hash/crc64"
	"math/bits"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
)

// The history of a node is a hash over all entries that it applied and all answers that it computed. Nodes with the
// same history have made the same decisions from the beginning. So the next entry detects a node with other results.
// The hash costs a few nanoseconds an operation.

var crcTable = crc64.MakeTable(crc64.ECMA)

// fold adds an entry to a history.
func fold(history uint64, l *raft.Log) uint64 {
	history = mix(history, l.Index)
	history = mix(history, l.Term)
	return mix(history, crc64.Checksum(l.Data, crcTable))
}

// foldDecisions adds answers to a history. It omits Locked: weir 0.1.0 does not compute it, and nodes
// of both versions must compute the same history during an upgrade. Only events and metrics depend on Locked.
func foldDecisions(history uint64, out []engine.Decision) uint64 {
	for i := range out {
		d := &out[i]
		history = mix(history, uint64(d.Status)<<56^uint64(d.Pair)<<60^uint64(d.Part)<<54^uint64(d.Allowed))
		history = mix(history, uint64(d.Remaining)^uint64(d.RetryMs)<<32)
		history = mix(history, uint64(d.ResetMs)^uint64(d.Limit)<<32)
		if d.Value != "" {
			history = mix(history, crc64.Checksum([]byte(d.Value), crcTable))
		}
	}
	return history
}

// mix is the multiply-and-fold step of wyhash (Wang Yi), with its constants.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	return high ^ low
}

// samples holds the histories at the last entries applied. A proposal names an earlier entry and the leader's history
// at it. When a follower applies the proposal, samples still has that entry.
type samples []struct{ index, history uint64 }

// mostSamples are the samples that all groups of a process share, and leastSamples what each has at least. More entries
// are never in flight. Nodes that compare their histories have the time of this many entries to ask each other.
const (
	mostSamples  = 4096
	leastSamples = 1024
)

func (s samples) add(index, history uint64) {
	at := &s[index%uint64(len(s))]
	at.index, at.history = index, history
}

// at returns the history at an index, if it is remembered.
func (s samples) at(index uint64) (uint64, bool) {
	at := &s[index%uint64(len(s))]
	return at.history, at.index == index
}

// Difference is an entry at which this node and another node have different histories.
type Difference struct {
	Index        uint64
	Mine, Theirs uint64
	Node         string // "" for the leader that proposed the entry
}
