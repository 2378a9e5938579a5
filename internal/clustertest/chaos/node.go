package chaos

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-project/weir/internal/clustertest/ledger"
)

const (
	// askTimeout is for questions that need no quorum.
	askTimeout = 500 * time.Millisecond
	// logTailBytes is how much of a node's log is quoted when the node ends by itself.
	logTailBytes = 3000
)

// Node is one member of a cluster: its identity, its addresses, its disk, and its current process. Faults of one node
// are sequential: Kill, Pause and Stop of its process come from one goroutine at a time.
type Node struct {
	ID       string
	Addr     string // for clients
	RaftAddr string // for the other nodes
	Dir      string
	LogFile  string

	binary string
	args   []string // the same at every start
	onExit func(n *Node, err error)

	life sync.Mutex // held while a process is started

	mu      sync.Mutex
	process *Process
	extra   []string // arguments of the current or last process only
	excused bool     // may end by itself
	retired bool     // must not be started again
}

// Start runs the node with extra arguments, unless it runs already.
func (n *Node) Start(extra ...string) error {
	n.life.Lock()
	defer n.life.Unlock()
	if p := n.Process(); n.retired || p != nil && p.Running() {
		return nil
	}
	p, err := startProcess(n.binary, n.LogFile, append(append([]string(nil), n.args...), extra...),
		func(err error) { n.ended(err) })
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process, n.extra = p, extra
	return nil
}

// hasWrongWall reports whether the current or last process was started with a wrong wall clock.
func (n *Node) hasWrongWall() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.extra, func(arg string) bool { return strings.HasPrefix(arg, wallFlag) })
}

// Process returns the node's current or last process.
func (n *Node) Process() *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// Excuse sets whether the node may exit by itself, which is its specified behaviour when it cannot trust its disk.
func (n *Node) Excuse(may bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.excused = may
}

// Retire kills the node for good.
func (n *Node) Retire() {
	n.life.Lock()
	defer n.life.Unlock()
	n.retired = true
	if p := n.Process(); p != nil {
		p.Kill()
	}
}

func (n *Node) ended(err error) {
	n.mu.Lock()
	excused := n.excused
	n.mu.Unlock()
	if !excused {
		n.onExit(n, err)
	}
}

// LogTail returns the end of the node's log, or "" if the log is empty.
func (n *Node) LogTail() string {
	b, _ := os.ReadFile(n.LogFile)
	return string(b[max(0, len(b)-logTailBytes):])
}

// Ask sends one command on a new connection.
func (n *Node) Ask(timeout time.Duration, args ...string) (any, error) {
	c, err := Dial(n.Addr, timeout)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	reply, err := c.Do(timeout, args...)
	if text, failed := reply.(ErrorReply); failed {
		return nil, fmt.Errorf("%s: %s: %w", n.ID, strings.Join(args, " "), text)
	}
	return reply, err
}

// Leads reports whether the node regards itself as the leader.
func (n *Node) Leads() bool {
	reply, err := n.Ask(askTimeout, "ROLE")
	return err == nil && isMaster(reply)
}

func isMaster(reply any) bool {
	items, ok := reply.([]any)
	return ok && len(items) > 0 && items[0] == "master"
}

// Digests asks the node for the applied index of each group that it has, and the hash of the group's state there.
func (n *Node) Digests() (all []ledger.Digest, err error) {
	reply, err := n.Ask(askTimeout, "DEBUG", "DIGEST")
	if err != nil {
		return nil, err
	}
	items, ok := reply.([]any)
	if !ok || len(items) == 0 || len(items)%2 != 0 {
		return nil, fmt.Errorf("%w: DEBUG DIGEST answered %v", errProtocol, reply)
	}
	for i := 0; i < len(items); i += 2 {
		index, ok1 := items[i].(int64)
		hash, ok2 := items[i+1].(string)
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("%w: DEBUG DIGEST answered %v", errProtocol, reply)
		}
		if index != 0 {
			all = append(all, ledger.Digest{
				Node: n.ID, Last: ledger.Applied{Group: i / 2, Index: uint64(index)}, Hash: hash})
		}
	}
	return all, nil
}
