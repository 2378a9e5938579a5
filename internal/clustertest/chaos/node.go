package chaos

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	// askTimeout is for questions that need no quorum.
	askTimeout = 500 * time.Millisecond
	// logTailBytes of a node's log is quoted when it ends by itself.
	logTailBytes = 3000
)

// Node is one member of a cluster: an identity, its addresses and its disk, and
// the process that runs as it at the moment. Faults of one node follow one
// another: Kill, Pause and Stop of its process come from one goroutine at a time.
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
	excused bool // may end by itself
	retired bool // is not to be started again
}

// Start runs the node, unless it runs already, with extra arguments besides its
// own.
func (n *Node) Start(extra ...string) error {
	n.life.Lock()
	defer n.life.Unlock()
	if p := n.Process(); n.retired || p != nil && p.Running() {
		return nil
	}
	p, err := startProcess(n.binary, n.LogFile, append(append([]string(nil), n.args...), extra...), func(err error) { n.ended(err) })
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.process = p
	return nil
}

// Process is the node's present or last run.
func (n *Node) Process() *Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process
}

// Excuse sets whether the node may exit by itself, as it promises to do when it
// cannot trust its disk.
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

// LogTail is the end of the node's log, empty when there is none.
func (n *Node) LogTail() string {
	b, _ := os.ReadFile(n.LogFile)
	return string(b[max(0, len(b)-logTailBytes):])
}

// Ask sends one command on a connection of its own.
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

// Leads says whether the node takes itself for the leader.
func (n *Node) Leads() bool {
	reply, err := n.Ask(askTimeout, "ROLE")
	return err == nil && isMaster(reply)
}

func isMaster(reply any) bool {
	items, ok := reply.([]any)
	return ok && len(items) > 0 && items[0] == "master"
}

// Digest asks the node how far it has applied the log and what its state is then.
func (n *Node) Digest() (Digest, error) {
	reply, err := n.Ask(askTimeout, "DEBUG", "DIGEST")
	if err != nil {
		return Digest{}, err
	}
	items, ok := reply.([]any)
	if !ok || len(items) != 2 {
		return Digest{}, fmt.Errorf("%w: DEBUG DIGEST answered %v", errProtocol, reply)
	}
	index, ok1 := items[0].(int64)
	hash, ok2 := items[1].(string)
	if !ok1 || !ok2 {
		return Digest{}, fmt.Errorf("%w: DEBUG DIGEST answered %v", errProtocol, reply)
	}
	return Digest{Node: n.ID, Applied: uint64(index), Hash: hash}, nil
}
