package raftstore

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/raftstore/peer"
)

// A node that has lost its disk, or never had one, has forgotten its votes and what it
// confirmed. It must rejoin under a new identity, even if it is no longer in the configuration: a
// member that was away since knows an older configuration, and could be elected with a second
// vote of the forgetful node. So a node has incarnations. The first has the id that the node was
// given, each later one that id with a suffix of its own.

// incarnationMark stands between the id that a node was given and the suffix of a later
// incarnation.
const incarnationMark = peer.IncarnationMark

// maxGivenID leaves room for the mark and the 32 bits behind it.
const maxGivenID = peer.MaxNameLen - len(incarnationMark) - 7

// maxRemovedIDs bounds the ids that are remembered as spent. Of more, the oldest are free
// again: a member that was away all the while would have to come back for that to matter.
const maxRemovedIDs = 1024

// newIncarnation returns the id of another incarnation.
func newIncarnation(id string) string {
	return givenID(id) + incarnationMark + strconv.FormatUint(uint64(rand.Uint32()), 36)
}

// givenID is the id that the node with this id was given.
func givenID(id string) string {
	base, _, _ := strings.Cut(id, incarnationMark)
	return base
}

// isIncarnation reports whether an id is that of a later incarnation.
func isIncarnation(id string) bool { return strings.Contains(id, incarnationMark) }

// IsLifeOf reports whether a node's id is the one that was given, or that of a later incarnation.
func IsLifeOf(id, given string) bool { return id == given || givenID(id) == given }

// removedIDs are the ids that have left the cluster, the oldest first. Later incarnations are not
// among them: their ids are never given twice.
func removedIDs(before []string, was, is []string) []string {
	now := before
	for _, id := range was {
		if !slices.Contains(is, id) && !isIncarnation(id) && !slices.Contains(now, id) {
			now = append(slices.Clip(now), id)
		}
	}
	return now[max(len(now)-maxRemovedIDs, 0):]
}
