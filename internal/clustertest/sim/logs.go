package sim

import (
	"errors"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/sharedlog"
)

// logs are the logs on the disk of a process: one, which several groups share.
type logs []*faultyLog

// sharedLimits let a shared log be truncated often.
var sharedLimits = sharedlog.Limits{FreeBytes: segmentBytes, DeadBytes: 2 * segmentBytes}

// openLogs opens the log of a process and sets it in the options of its node.
func (p *process) openLogs(o *raftstore.Options, noSync bool) error {
	broke := func() { p.crash("the term could not be stored", 100, 0) }
	l, err := openLog(logDir, p.disk, noSync, p.dead, broke)
	if err != nil {
		return err
	}
	p.logs = logs{l}
	if o.Groups == 1 && o.Replicas == 0 {
		o.Log = append(o.Log, l)
		return nil
	}
	p.shared = sharedlog.New(func() (sharedlog.Base, error) { return l, nil }, sharedLimits)
	if o.Replicas > 0 {
		p.openPlaced(o, broke)
		return nil
	}
	for group := range o.Groups {
		part, err := p.shared.Part(uint32(group + 1))
		if err != nil {
			return errors.Join(err, p.closeLogs())
		}
		o.Log = append(o.Log, &faultyPart{part, broke, p.dead})
	}
	return nil
}

// closeLogs closes the log of a process.
func (p *process) closeLogs() error {
	var err error
	if p.shared != nil {
		err = p.shared.Close()
	}
	return errors.Join(err, p.logs.Close())
}

func (all logs) hang() {
	for _, l := range all {
		l.hang()
	}
}

func (all logs) release(forever bool) {
	for _, l := range all {
		l.release(forever)
	}
}

func (all logs) hasHung() bool {
	for _, l := range all {
		if l.hasHung() {
			return true
		}
	}
	return false
}

// Close closes all logs.
func (all logs) Close() (err error) {
	for _, l := range all {
		err = errors.Join(err, l.Close())
	}
	return err
}

// faultyPart is the log of one of several groups. Like faultyLog, it does not let the Raft library panic.
type faultyPart struct {
	*sharedlog.Part
	broke func()
	dead  <-chan struct{}
}

// GetLog reads an entry; see faultyLog.GetLog.
func (p *faultyPart) GetLog(index uint64, entry *raft.Log) error {
	return orNoop(p.Part.GetLog(index, entry), p.dead, index, entry)
}

// SetUint64 stores a number; see faultyLog.SetUint64.
func (p *faultyPart) SetUint64(key []byte, value uint64) error {
	return orBroke(p.Part.SetUint64(key, value), p.broke, key)
}
