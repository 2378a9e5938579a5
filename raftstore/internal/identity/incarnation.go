package identity

import (
	"fmt"
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

// MaxRemovedIDs bounds the ids that are remembered as spent. Of more, the oldest are free
// again: a member that was away all the while would have to come back for that to matter.
const MaxRemovedIDs = 1024

// NewIncarnation returns the id of another incarnation.
func NewIncarnation(id string) string {
	return GivenID(id) + incarnationMark + strconv.FormatUint(uint64(rand.Uint32()), 36)
}

// GivenID is the id that the node with this id was given.
func GivenID(id string) string {
	base, _, _ := strings.Cut(id, incarnationMark)
	return base
}

// IsIncarnation reports whether an id is that of a later incarnation.
func IsIncarnation(id string) bool { return strings.Contains(id, incarnationMark) }

// IsIncarnationOf reports whether a node's id is the one that was given, or that of a later incarnation.
func IsIncarnationOf(id, given string) bool { return id == given || GivenID(id) == given }

// RemovedIDs are the ids that have left the cluster, the oldest first. Later incarnations are not
// among them: their ids are never given twice.
func RemovedIDs(before []string, was, is []string) []string {
	now := before
	for _, id := range was {
		if !slices.Contains(is, id) && !IsIncarnation(id) && !slices.Contains(now, id) {
			now = append(slices.Clip(now), id)
		}
	}
	return now[max(len(now)-MaxRemovedIDs, 0):]
}

// CheckGivenID refuses an id that no new node can have: the mark tells incarnations apart, and
// there must be room for it.
func CheckGivenID(id string) error {
	if id == "" || len(id) > maxGivenID || IsIncarnation(id) {
		return fmt.Errorf("--node-id must have 1 to %d characters and no %q, not %q", maxGivenID, incarnationMark, id)
	}
	return nil
}
