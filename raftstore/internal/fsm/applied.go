package fsm

// appliedWaiter waits until the FSM has applied an entry.
type appliedWaiter struct {
	index uint64
	done  chan struct{}
}

// WhenApplied returns a channel that is closed when the entry at index has been applied.
// The caller must call forget when it stops waiting.
func (m *FSM) WhenApplied(index uint64) (done <-chan struct{}, forget func()) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	w := &appliedWaiter{index, make(chan struct{})}
	if m.through() >= index {
		close(w.done)
		return w.done, func() {}
	}
	m.waiters = append(m.waiters, w)
	return w.done, func() { m.forgetWaiter(w) }
}

func (m *FSM) forgetWaiter(gone *appliedWaiter) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	for i, w := range m.waiters {
		if w == gone {
			m.waiters = append(m.waiters[:i], m.waiters[i+1:]...)
			return
		}
	}
}

// wakeWaiters wakes the waiters for entries up to index. The caller holds mu.
func (m *FSM) wakeWaiters(index uint64) {
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

// MarkApplied records that all entries up to index, of any kind, are applied.
func (m *FSM) MarkApplied(index uint64) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.passLocked(index)
}

// resetApplied records that an image was loaded. The image may be older than the previous state if it comes from a
// recovery of other nodes that overrules this node's own recovery.
func (m *FSM) resetApplied(index uint64) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.passed = index
}

// passLocked is MarkApplied for a caller that holds mu.
func (m *FSM) passLocked(index uint64) {
	if m.passed = max(m.passed, index); len(m.waiters) > 0 {
		m.wakeWaiters(m.passed)
	}
}

// through returns the last entry that is known to be applied. The caller holds mu.
func (m *FSM) through() uint64 { return max(m.passed, m.State.Index) }

// HasApplied reports whether all entries up to index are applied.
func (m *FSM) HasApplied(index uint64) bool {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.through() >= index
}

// LastEntry returns the index and the term of the last entry applied.
func (m *FSM) LastEntry() (index, term uint64) {
	m.Mu.Lock()
	defer m.Mu.Unlock()
	return m.State.Index, m.State.Term
}
