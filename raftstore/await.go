package raftstore

import "github.com/hashicorp/raft"

// await waits for the Raft library's answer. Its Error method alone is not enough:
// what the library accepts at the moment it shuts down it may never answer.
func (n *Node) await(f raft.Future) error {
	answer := make(chan error, 1)
	go func() { answer <- f.Error() }()
	select {
	case err := <-answer:
		return err
	case <-n.ended:
		return raft.ErrRaftShutdown
	}
}
