package raftstore

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/raftstore/peer"
)

// A node that has lost its disk, or never had one, has forgotten its votes and what it
// confirmed. To the others it must be another node, also when it is out of the
// configuration: a member that was away since knows an older one, and could be elected
// with a vote that the forgetful would give. So an id has lives: the first has the id
// itself, each later one a suffix of its own.

// incarnationMark stands between the id that a node was given and what tells a later
// life from the first.
const incarnationMark = peer.IncarnationMark

// maxGivenID leaves room for the mark and the 32 bits behind it.
const maxGivenID = peer.MaxNameLen - len(incarnationMark) - 7

// maxGone bounds the ids that are remembered as spent. Of more, the oldest are free
// again: a member that was away all the while would have to come back for that to matter.
const maxGone = 1024

// nextLife makes the id of another life.
func nextLife(id string) string {
	return baseOf(id) + incarnationMark + strconv.FormatUint(uint64(rand.Uint32()), 36)
}

// baseOf is the id that the node with this id was given.
func baseOf(id string) string {
	base, _, _ := strings.Cut(id, incarnationMark)
	return base
}

// isLater reports whether an id is that of a later life.
func isLater(id string) bool { return strings.Contains(id, incarnationMark) }

// IsLifeOf reports whether a node's id is the one that was given, or that of a later life.
func IsLifeOf(id, given string) bool { return id == given || baseOf(id) == given }

// gone are the ids that have left the cluster, the oldest first. Later lives are not
// among them: their ids are never given twice.
func gone(before []string, was, is []string) []string {
	now := before
	for _, id := range was {
		if !slices.Contains(is, id) && !isLater(id) && !slices.Contains(now, id) {
			now = append(slices.Clip(now), id)
		}
	}
	return now[max(len(now)-maxGone, 0):]
}
