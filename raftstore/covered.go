package raftstore

// dropCoveredLog empties a log that ends before the newest image. The Raft library
// installs an image first and removes the log before it later; after a crash in
// between, the next entry would leave a gap, which the log refuses.
func (n *Node) dropCoveredLog() error {
	infos, err := n.images.List()
	if err != nil || len(infos) == 0 {
		return err
	}
	first, err := n.logs.FirstIndex()
	if err != nil {
		return err
	}
	last, err := n.logs.LastIndex()
	if err != nil || last == 0 || last >= infos[0].Index {
		return err
	}
	return n.logs.DeleteRange(first, last)
}
