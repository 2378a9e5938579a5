package identity

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-project/weir/raftstore/peer"
)

// A node that has lost its disk, or never had one, has forgotten its votes and its confirmations. It must rejoin
// under a new id, even if its old id is no longer in the configuration. A member that was away may know an older
// configuration, and a second vote under the old id could elect it. So a node has incarnations. The first has the
// given id, and each later one appends its own suffix.

// incarnationMark separates the given id from the suffix of a later incarnation.
const incarnationMark = peer.IncarnationMark

// maxGivenID reserves space for the mark and a suffix of 32 bits.
const maxGivenID = peer.MaxNameLen - len(incarnationMark) - 7

// MaxRemovedIDs bounds the removed ids that are remembered. Beyond it, the oldest id can be used again. That is a
// danger only if a member comes back that was away all the time.
const MaxRemovedIDs = 1024

// NewIncarnation returns the id of another incarnation.
func NewIncarnation(id string) string {
	return GivenID(id) + incarnationMark + strconv.FormatUint(uint64(rand.Uint32()), 36)
}

// GivenID returns the given id of the node with this id.
func GivenID(id string) string {
	base, _, _ := strings.Cut(id, incarnationMark)
	return base
}

// IsIncarnation reports whether an id belongs to a later incarnation.
func IsIncarnation(id string) bool { return strings.Contains(id, incarnationMark) }

// IsIncarnationOf reports whether id is the given id, or the id of a later incarnation of it.
func IsIncarnationOf(id, given string) bool { return id == given || GivenID(id) == given }

// RemovedIDs adds to the ids in before the ids of the configuration was that are not in the configuration is. The
// result has the oldest first. Ids of later incarnations are not added, because no node gets such an id again.
func RemovedIDs(before []string, was, is []string) []string {
	now := before
	for _, id := range was {
		if !slices.Contains(is, id) && !IsIncarnation(id) && !slices.Contains(now, id) {
			now = append(slices.Clip(now), id)
		}
	}
	return now[max(len(now)-MaxRemovedIDs, 0):]
}

// CheckGivenID returns an error for an id that a new node must not have. The id must leave space for the suffix of an
// incarnation and must not contain the mark.
func CheckGivenID(id string) error {
	if id == "" || len(id) > maxGivenID || IsIncarnation(id) {
		return fmt.Errorf("--node-id must have 1 to %d characters and no %q, not %q", maxGivenID, incarnationMark, id)
	}
	return nil
}
