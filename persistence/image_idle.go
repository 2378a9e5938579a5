package persistence

import "time"

// idleAfter is how long work/ must be unchanged before CloseIdle closes it. Pebble needs some of this time to merge and
// remove tables.
const idleAfter = 10 * time.Second

// CloseIdle closes work/ if nothing was written to it since the last Seal or Load, and that is idleAfter ago. The next
// Write or Seal opens it again. A process with many Images saves memory and goroutines so. CloseIdle does not wait for
// other calls.
func (m *Images) CloseIdle() error {
	if !m.work.TryLock() {
		return nil
	}
	defer m.work.Unlock()
	if m.db == nil || m.idle.IsZero() || time.Since(m.idle) < idleAfter {
		return nil
	}
	return m.closeIdle()
}

// closeIdle closes work/, whose content Pebble has flushed. Pebble's files stay, and known remains valid: Pebble never
// reuses the name of a table.
func (m *Images) closeIdle() error {
	err := m.must(m.db.Close())
	m.db, m.closedIdle = nil, true
	m.journal.release()
	return err
}

// reopenWork opens work/ if CloseIdle has closed it. It returns ErrNotLoaded if work/ has no content to continue from.
// A failure ends the process.
func (m *Images) reopenWork() (err error) {
	switch {
	case m.db != nil:
		return nil
	case !m.closedIdle:
		return ErrNotLoaded
	}
	if m.db, err = openExisting(m.dir.file(workName), m.workOptions(&m.loaded)); err != nil {
		m.db = nil
		return m.must(err)
	}
	m.journal.db, m.closedIdle = m.db, false
	return nil
}

// hasWork reports whether work/ is open, or can be opened again.
func (m *Images) hasWork() bool { return m.db != nil || m.closedIdle }

func (m *Images) closeEagerly() error {
	if !m.eager {
		return nil
	}
	return m.closeIdle()
}
