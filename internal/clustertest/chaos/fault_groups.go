package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// loadClients is the number of clients that load one group without a pause.
const loadClients = 16

// ErrNotAlone reports that a node whose replica of one group was removed did not end this group alone.
var ErrNotAlone = errors.New("a removed group did not end alone")

// Groups returns the number of Raft groups that the arguments of the nodes name.
func (c ClusterConfig) Groups() int { return c.number("--groups", 1) }

// Replicas returns the number of nodes that have each group; 0: every node has every group.
func (c ClusterConfig) Replicas() int { return c.number("--replicas", 0) }

// number returns the value of a flag in the arguments of the nodes.
func (c ClusterConfig) number(flag string, without int) int {
	for i, arg := range c.Args {
		name, value, joined := strings.Cut(arg, "=")
		if name == flag && !joined && i+1 < len(c.Args) {
			value = c.Args[i+1]
		}
		if n, err := strconv.Atoi(value); name == flag && err == nil {
			return n
		}
	}
	return without
}

// loadGroup keeps the leader of one group busy, so that this group is slow and the others share its machine.
func (h hand) loadGroup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, h.lasts)
	defer cancel()
	key := "load:" + strconv.Itoa(h.rng.IntN(1000)) // a key of some group that no judged client uses
	var clients sync.WaitGroup
	for range loadClients {
		n := h.Nodes[h.anyone()]
		clients.Go(func() {
			for ctx.Err() == nil {
				if conn, err := Dial(n.Addr, quickTimeout); err == nil {
					for ctx.Err() == nil && err == nil {
						_, err = conn.Do(quickTimeout, "RL.SLIDING", key, "10s", "1000")
					}
					conn.Close()
				}
				_ = sleep(ctx, pollInterval)
			}
		})
	}
	clients.Wait()
	return nil
}

// removeGroup removes a node from one group. The node must end this group alone. Then the whole node is replaced, and
// must end once. The group is not the first one: a node that is no member of the first group is removed from all.
func (h hand) removeGroup(ctx context.Context) error {
	if h.Replicas > 0 {
		return h.removeReplica(ctx)
	}
	n, group := h.Nodes[h.anyone()], 1+h.rng.IntN(h.Groups-1)
	if err := poll(ctx, replaceTimeout, h.whole); err != nil {
		return nil // the run is over: no node may be lost while another has no vote
	}
	id, err := identityIn(n.Dir)
	if err != nil {
		return err
	}
	n.Excuse(true)
	defer n.Excuse(false)
	ends := n.ends()
	ctx = context.WithoutCancel(ctx)
	err = poll(ctx, replaceTimeout, func() bool {
		_, err := h.Nodes[h.anyone()].Ask(transferTimeout, "DEBUG", "REMOVE", id, strconv.Itoa(group))
		return err == nil || strings.Contains(err.Error(), "ERR no node")
	})
	if err == nil {
		err = poll(ctx, replaceTimeout, func() bool { return n.endedGroups() == 1 })
	}
	if err != nil {
		return fmt.Errorf("%w: group %d of %s: %w\n%s", ErrNotAlone, group, n.ID, err, n.LogTail())
	}
	_ = sleep(ctx, h.lasts)
	if err := h.replace(n); err != nil {
		return err
	}
	if more := n.ends() - ends; more != endsOfReplaced {
		return fmt.Errorf("%w: %s ended %d times instead of %d\n%s", ErrNotAlone, n.ID, more, endsOfReplaced,
			n.LogTail())
	}
	return nil
}

// endsOfReplaced is how often a node ends when it is replaced: when it was removed, and to take a new id.
const endsOfReplaced = 2

// ends returns how often the node has ended by itself.
func (n *Node) ends() int {
	log, _ := os.ReadFile(n.LogFile)
	return len(lastWords.FindAll(log, -1))
}

// endedGroups returns how many groups have ended on the node according to its own status.
func (n *Node) endedGroups() int {
	info, err := n.Ask(askTimeout, "INFO", "raft")
	if err != nil {
		return 0
	}
	return numberIn(info, "raft_groups_ended:")
}
