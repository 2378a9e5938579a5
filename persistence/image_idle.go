package persistence

import (
	"errors"
	"fmt"
	"time"
)

// idleAfter is how long work/ must be unchanged before CloseIdle closes it. Pebble needs some of this time to merge and
// remove tables.
const idleAfter = 10 * time.Second

// IsIdle reports whether CloseIdle would close work/ now. It does not wait.
func (m *Images) IsIdle() bool {
	if !m.work.TryLock() {
		return false
	}
	defer m.work.Unlock()
	return m.isIdle()
}

func (m *Images) isIdle() bool {
	return m.db != nil && !m.idle.IsZero() && time.Since(m.idle) >= idleAfter
}

// CloseIdle closes work/ if nothing was written to it since the last Seal or Load, and that is idleAfter ago. The next
// Write or Seal opens it again. A process with many Images saves memory and goroutines so. CloseIdle does not wait for
// other calls.
func (m *Images) CloseIdle() error {
	if !m.work.TryLock() {
		return nil
	}
	defer m.work.Unlock()
	if !m.isIdle() {
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
// A failure ends the process. The journal must end where it ended before, or the next image would lack changes.
func (m *Images) reopenWork() error {
	switch {
	case m.db != nil:
		return nil
	case !m.closedIdle:
		return ErrNotLoaded
	}
	db, err := openExisting(m.dir.file(workName), m.workOptions(&m.loaded))
	if err != nil {
		return m.must(err)
	}
	again, _, err := openJournal(db, imageRecord, m.renewal)
	if err == nil && again.next != m.journal.next {
		err = fmt.Errorf("%w (%s ends at item %d, not %d)", ErrDamaged, workName, again.next-1, m.journal.next-1)
	}
	if err != nil {
		return m.must(errors.Join(err, db.Close()))
	}
	m.db, m.journal.db, m.closedIdle = db, db, false
	return nil
}

// hasWork reports whether work/ is open, or can be opened again.
func (m *Images) hasWork() bool { return m.db != nil || m.closedIdle }

// closeEagerly closes work/ at once in tests.
func (m *Images) closeEagerly() error {
	if !m.eager {
		return nil
	}
	return m.closeIdle()
}
