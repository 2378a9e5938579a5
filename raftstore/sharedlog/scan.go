package sharedlog

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/wallog"
)

// scan rebuilds the index from the records. It returns a wallog.CorruptError if the records are not those of a log.
func (l *Log) scan() error {
	first, err := l.base.FirstIndex()
	if err != nil {
		return err
	}
	if l.last, err = l.base.LastIndex(); err != nil {
		return err
	}
	found := map[uint32]*found{}
	for at := first; at <= l.last && at > 0; at++ {
		var rec raft.Log
		if err := l.base.GetLog(at, &rec); err != nil {
			return err
		}
		h, err := decodeHeader(rec.Extensions)
		if err != nil {
			return corrupt(at, err.Error())
		}
		if found[h.part] == nil {
			found[h.part] = newFound()
		}
		found[h.part].add(h, at, &rec)
		l.spans.add(at, bytesOf(&rec))
	}
	for name, f := range found {
		if f.empty() {
			continue
		}
		p := l.part(name)
		p.stable = f.stable
		if p.entries, err = f.index(); err != nil {
			return err
		}
	}
	return nil
}

// found gathers the records of a part. The records of an entry may be in any order, because a record that was written
// again comes after those of later entries, and older records may be gone.
type found struct {
	entries []placed
	stable  map[string]value
}

type placed struct {
	index, at uint64
	bytes     int64
}

func newFound() *found { return &found{stable: map[string]value{}} }

func (f *found) empty() bool { return len(f.entries) == 0 && len(f.stable) == 0 }

func (f *found) add(h record, at uint64, rec *raft.Log) {
	switch h.kind {
	case kindEntry:
		f.entries = append(f.entries, placed{h.index, at, bytesOf(rec)})
	case kindStable:
		f.stable[string(h.key)] = value{rec.Data, at}
	case kindCut:
		f.entries = slices.DeleteFunc(f.entries, func(e placed) bool { return e.index >= h.index })
	case kindLow:
		f.entries = slices.DeleteFunc(f.entries, func(e placed) bool { return e.index < h.index })
	case kindDrop:
		*f = *newFound()
	}
}

// index returns the index of the entries, or an error if one between two others is missing.
func (f *found) index() (entries, error) {
	slices.SortStableFunc(f.entries, func(a, b placed) int { return cmp.Compare(a.index, b.index) })
	var e entries
	for _, one := range f.entries {
		if len(e.at) > 0 && one.index > e.last()+1 {
			return e, corrupt(one.at, fmt.Sprintf("entry %d of the group is missing", e.last()+1))
		}
		e.put(one.index, one.at, one.bytes)
	}
	return e, nil
}

func corrupt(at uint64, reason string) error {
	return &wallog.CorruptError{File: "shared log", Entry: at, Reason: reason}
}
