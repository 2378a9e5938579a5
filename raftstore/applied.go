package raftstore

// appliedWaiter waits until the machine has applied an entry.
type appliedWaiter struct {
	index uint64
	done  chan struct{}
}

// whenApplied returns a channel that is closed when the entry at index has been applied.
// The caller calls forget when it waits no more. Only readIndexer waits, so there are few.
func (m *machine) whenApplied(index uint64) (done <-chan struct{}, forget func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w := &appliedWaiter{index, make(chan struct{})}
	if m.state.Index >= index {
		close(w.done)
		return w.done, func() {}
	}
	m.waiters = append(m.waiters, w)
	return w.done, func() { m.forgetWaiter(w) }
}

func (m *machine) forgetWaiter(gone *appliedWaiter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, w := range m.waiters {
		if w == gone {
			m.waiters = append(m.waiters[:i], m.waiters[i+1:]...)
			return
		}
	}
}

// wakeWaiters wakes those that wait for an entry up to index. The caller holds mu.
func (m *machine) wakeWaiters(index uint64) {
	left := m.waiters[:0]
	for _, w := range m.waiters {
		if w.index > index {
			left = append(left, w)
			continue
		}
		close(w.done)
	}
	m.waiters = left
}

// lastEntry returns the index and the term of the last entry applied.
func (m *machine) lastEntry() (index, term uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.Index, m.state.Term
}
