package sim

import (
	"errors"
	"fmt"
	"strings"

	"github.com/weir-project/weir/persistence"
	"github.com/weir-project/weir/raftstore"
)

// fatal ends the process after it found that it cannot continue. The package comment explains why this may return.
func (p *process) fatal(err error) {
	select {
	case <-p.dead:
		return
	default:
	}
	s := p.host.sim
	s.report.fatal(kindOf(err))
	if !p.expected(err) {
		s.violation("%s stopped: %v", p.host.id, err)
	}
	p.host.mu.Lock()
	if errors.Is(err, raftstore.ErrRemoved) || errors.Is(err, raftstore.ErrDiverged) ||
		errors.Is(err, raftstore.ErrRemovedID) && p.host.removed {
		p.host.gone = true
	}
	p.host.mu.Unlock()
	p.crash(fmt.Sprintf("stopped itself: %v", err), 100, 0)
	if persistent(err) {
		select {} // storage code panics when this returns; the violation is recorded
	}
}

// expected reports whether an injected fault explains why a process stopped.
func (p *process) expected(err error) bool {
	switch {
	case errors.Is(err, raftstore.ErrRemoved):
		p.host.mu.Lock()
		defer p.host.mu.Unlock()
		return p.host.removed
	case errors.Is(err, raftstore.ErrLostState):
		p.host.mu.Lock()
		defer p.host.mu.Unlock()
		return p.host.lost
	case errors.Is(err, raftstore.ErrRemovedID): // or it was removed before it learned that it was a member
		p.host.mu.Lock()
		defer p.host.mu.Unlock()
		return p.host.lost || p.host.removed
	case errors.Is(err, raftstore.ErrLogFailed):
		return p.disk.hasFailed()
	case errors.Is(err, raftstore.ErrStuck):
		return p.logs.hasHung() || isHandover(err) || isReplacedLog(err)
	}
	for _, never := range []error{raftstore.ErrDiverged, raftstore.ErrDisputed,
		raftstore.ErrBadEntry, raftstore.ErrNewer} {
		if errors.Is(err, never) {
			return false
		}
	}
	return p.disk.hasFailed() && !persistent(err)
}

// isHandover recognises the watchdog's response to a known defect of the Raft library, which any transfer of leadership
// may trigger.
func isHandover(err error) bool { return strings.Contains(err.Error(), "handover") }

// isReplacedLog recognises the restart that the Raft library needs after it has installed an image over a log with
// different later entries.
func isReplacedLog(err error) bool {
	return strings.Contains(err.Error(), "replaced the end of the log")
}

func persistent(err error) bool {
	return errors.Is(err, persistence.ErrDisk) || errors.Is(err, persistence.ErrDiskFullLive) ||
		errors.Is(err, persistence.ErrDamagedLive)
}

// kindOf returns the name of the reason why a process stopped.
func kindOf(err error) string {
	if isHandover(err) {
		return "a handover did not end"
	}
	if isReplacedLog(err) {
		return "an image replaced the end of the log"
	}
	for _, known := range []error{
		raftstore.ErrDiverged, raftstore.ErrDisputed, raftstore.ErrRemoved, raftstore.ErrLostState,
		raftstore.ErrRemovedID, raftstore.ErrStuck, raftstore.ErrLogFailed, raftstore.ErrBadEntry, raftstore.ErrNewer,
		persistence.ErrDisk, persistence.ErrDamagedLive, persistence.ErrDiskFullLive,
	} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return err.Error()
}
