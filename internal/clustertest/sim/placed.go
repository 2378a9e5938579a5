package sim

import (
	"path/filepath"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore"
	"github.com/weir-project/weir/raftstore/sharedlog"
)

// partFile is the file in the data directory of a group that names the group's part of the log. A node deletes it with
// the state of a replica that was moved.
const partFile = "log-part"

// placedLog is the log of a group whose replicas come and go. As in a process without simulated disks, a new replica
// gets a new part of the shared log.
type placedLog struct {
	of    *process
	dir   string // of the group
	broke func()

	mu   sync.Mutex
	part *faultyPart // nil: the next access opens it
}

// openPlaced sets the logs of the groups of a process in the options of its node.
func (p *process) openPlaced(o *raftstore.Options, broke func()) {
	all := map[string]*placedLog{}
	for group := range o.Groups {
		l := &placedLog{of: p, dir: raftstore.GroupDir(o.DataDir, group), broke: broke}
		all[l.dir] = l
		o.Log = append(o.Log, l)
	}
	p.disk.removed = func(path string) {
		if l := all[filepath.Dir(path)]; l != nil && filepath.Base(path) == partFile {
			l.drop()
		}
	}
}

// open returns the part that the group's directory names.
func (l *placedLog) open() (*faultyPart, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.part != nil {
		return l.part, nil
	}
	name, err := sharedlog.Name(l.of.disk, l.dir, partFile)
	if err != nil {
		return nil, err
	}
	part, err := l.of.shared.Part(name)
	if err != nil {
		return nil, err
	}
	l.part = &faultyPart{part, l.broke, l.of.dead}
	return l.part, nil
}

// drop closes the part of a replica that was moved.
func (l *placedLog) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.part != nil {
		l.part.Close()
		l.part = nil
	}
}

func (l *placedLog) IsMonotonic() bool { return true }

func (l *placedLog) FirstIndex() (uint64, error) {
	part, err := l.open()
	if err != nil {
		return 0, err
	}
	return part.FirstIndex()
}

func (l *placedLog) LastIndex() (uint64, error) {
	part, err := l.open()
	if err != nil {
		return 0, err
	}
	return part.LastIndex()
}

func (l *placedLog) GetLog(index uint64, entry *raft.Log) error {
	part, err := l.open()
	if err != nil {
		return orNoop(err, l.of.dead, index, entry)
	}
	return part.GetLog(index, entry)
}

func (l *placedLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

func (l *placedLog) StoreLogs(entries []*raft.Log) error {
	part, err := l.open()
	if err != nil {
		return err
	}
	return part.StoreLogs(entries)
}

func (l *placedLog) DeleteRange(low, high uint64) error {
	part, err := l.open()
	if err != nil {
		return err
	}
	return part.DeleteRange(low, high)
}

func (l *placedLog) Set(key, value []byte) error {
	part, err := l.open()
	if err != nil {
		return err
	}
	return part.Set(key, value)
}

func (l *placedLog) Get(key []byte) ([]byte, error) {
	part, err := l.open()
	if err != nil {
		return nil, err
	}
	return part.Get(key)
}

func (l *placedLog) SetUint64(key []byte, value uint64) error {
	part, err := l.open()
	if err != nil {
		return orBroke(err, l.broke, key)
	}
	return part.SetUint64(key, value)
}

func (l *placedLog) GetUint64(key []byte) (uint64, error) {
	part, err := l.open()
	if err != nil {
		return 0, err
	}
	return part.GetUint64(key)
}
