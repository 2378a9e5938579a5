package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	// logDirName and identityName are the places of a node's log and identity.
	logDirName   = "shared-log"
	identityName = "NODE"
	// replaceTimeout bounds the removal of a node and its rejoin, also while the network is faulty.
	replaceTimeout = 60 * time.Second
)

var (
	// ErrUnexplained reports that a node refused a damaged log without a reason.
	ErrUnexplained = errors.New("a damaged log was refused without a reason")
	// ErrNotReplaced reports that a node did not rejoin.
	ErrNotReplaced = errors.New("a node with a damaged log could not be replaced")
)

// refusal matches the message in which a node names the damaged entry and file of its log.
var refusal = regexp.MustCompile(
	`log entry \d+ is corrupt \(\S+\.wal[^)]*\): [^;]+; this node does not start, and has changed nothing: `)

// damageLog flips a bit in the log of a stopped node, and starts the node. The node comes up with all its data, or it
// refuses to start and is replaced as clustering.md describes.
func (h hand) damageLog(ctx context.Context) error {
	n := h.Nodes[h.anyone()]
	if err := poll(ctx, replaceTimeout, h.whole); err != nil {
		return nil // the run is over: no node may be lost while another has no vote
	}
	n.Excuse(true)
	defer n.Excuse(false)
	n.Process().Kill()
	what, err := h.flipBit(filepath.Join(n.Dir, logDirName))
	if err != nil {
		return err
	}
	if err := n.Start(); err != nil {
		return err
	}
	n.Process().note("flipped %s", what)
	if err := n.AwaitUp(context.WithoutCancel(ctx)); err == nil {
		return nil // the damage was in unread bytes; the checks judge the node's data
	}
	if n.Process().Running() {
		return fmt.Errorf("%s with %s flipped %w\n%s", n.ID, what, ErrNotUp, n.LogTail())
	}
	log := n.LogTail()
	if i := strings.LastIndex(log, "chaos: start "); i >= 0 {
		log = log[i:]
	}
	if !refusal.MatchString(log) {
		return fmt.Errorf("%s with %s flipped: %w\n%s", n.ID, what, ErrUnexplained, log)
	}
	h.Refused.Add(1)
	return h.replace(n)
}

// flipBit flips one bit in the used part of the newest file of a log.
func (h hand) flipBit(dir string) (what string, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil {
		return "", err
	}
	for i := len(names) - 1; i >= 0; i-- {
		b, err := os.ReadFile(names[i])
		if err != nil {
			return "", err
		}
		used := len(b)
		for used > 0 && b[used-1] == 0 {
			used--
		}
		if used == 0 {
			continue // nothing has been written to it yet
		}
		at, bit := h.rng.IntN(used), h.rng.IntN(8)
		b[at] ^= 1 << bit
		return fmt.Sprintf("bit %d of byte %d in %s", bit, at, filepath.Base(names[i])),
			os.WriteFile(names[i], b, 0o644)
	}
	return "", fmt.Errorf("%s: nothing to damage: %w", dir, os.ErrNotExist)
}

// replace removes a node that refused to start from the cluster, empties its directory, and restarts it until it is a
// voter. It finishes even after the end of the run.
func (h hand) replace(n *Node) error {
	id, err := identityIn(n.Dir)
	if err != nil {
		return err
	}
	ctx := context.Background()
	err = poll(ctx, replaceTimeout, func() bool {
		i := h.LeaderNow()
		if i < 0 {
			return false
		}
		_, err := h.Nodes[i].Ask(transferTimeout, "WEIR.CLUSTER", "REMOVE", id)
		return (err == nil || strings.Contains(err.Error(), "ERR no node")) && !h.wholeAt(i)
	})
	if err != nil {
		return fmt.Errorf("%w: %s is not removed: %w", ErrNotReplaced, id, err)
	}
	if err := poll(ctx, replaceTimeout, func() bool { return !n.Process().Running() }); err != nil {
		return fmt.Errorf("%w: %s runs after its removal: %w\n%s", ErrNotReplaced, id, err, n.LogTail())
	}
	content, err := os.ReadDir(n.Dir)
	for _, c := range content {
		err = errors.Join(err, os.RemoveAll(filepath.Join(n.Dir, c.Name())))
	}
	if err != nil {
		return err
	}
	var last error
	err = poll(ctx, movedWithin, func() bool {
		last = n.Start() // the node ends once, to start again under another id
		if last == nil && h.Replicas > 0 {
			last = h.repair(ctx)
		}
		return last == nil && h.whole()
	})
	if err != nil {
		return fmt.Errorf("%w: %s does not join: %w: %w\n%s", ErrNotReplaced, id, err, last, n.LogTail())
	}
	return nil
}

// whole reports whether every node says that every node is a voter. The leader alone may say so of a promotion that it
// has not committed. If it then loses its log, a group may have lost its majority.
func (h hand) whole() bool {
	for i := range h.Nodes {
		if !h.wholeAt(i) {
			return false
		}
	}
	return true
}

// wholeAt reports whether a node says that every node is a voter of every group, or, if the groups are on a part of the
// nodes, that all nodes are up and each group has its voters.
func (h hand) wholeAt(i int) bool {
	if h.Replicas > 0 {
		s, err := h.Nodes[i].status()
		return err == nil && s.allUp(len(h.Nodes)) && s.whole(h.Groups, h.Replicas)
	}
	info, err := h.Nodes[i].Ask(askTimeout, "INFO")
	return err == nil && strings.Contains(fmt.Sprint(info), fmt.Sprintf("raft_voters:%d\r\n", len(h.Nodes)))
}

// identityIn returns the id of the node that owns a directory.
func identityIn(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, identityName))
	if err != nil {
		return "", err
	}
	var id struct{ NodeID string }
	return id.NodeID, json.Unmarshal(b, &id)
}
