package wallog_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
	"github.com/weir-project/weir/raftstore/sharedlog"
	"github.com/weir-project/weir/raftstore/wallog"
)

// smallLimits let a shared log with small segments be truncated often.
var smallLimits = sharedlog.Limits{FreeBytes: smallSegment, DeadBytes: 2 * smallSegment}

func openShared(dir string, files types.VFS, boot string) *sharedlog.Log {
	return sharedlog.New(func() (sharedlog.Base, error) {
		return wallog.OpenOn(dir, files, smallSegment, true, boot)
	}, smallLimits)
}

// sharedKept is what the parts of a shared log must hold, by name.
type sharedKept map[uint32]*kept

func newSharedKept() sharedKept {
	all := sharedKept{}
	for name := range uint32(3) {
		all[name+1] = &kept{data: map[uint64]string{}}
	}
	return all
}

func (all sharedKept) clone() sharedKept {
	c := sharedKept{}
	for name, k := range all {
		one := *k
		one.data = maps.Clone(k.data)
		c[name] = &one
	}
	return c
}

// holds returns an error that names what the parts of a log lack.
func (all sharedKept) holds(l *sharedlog.Log) error {
	for name, k := range all {
		p, err := l.Part(name)
		if err != nil {
			return err
		}
		if err := k.holds(p); err != nil {
			return fmt.Errorf("part %d: %w", name, err)
		}
	}
	return nil
}

// plan notes a random change, and returns the function that makes it.
func (k *kept) plan(r *rand.Rand) func(*sharedlog.Part) error {
	switch n := r.IntN(12); {
	case n < 8:
		l := &raft.Log{Index: k.last + 1, Term: r.Uint64N(5), Data: make([]byte, r.IntN(300))}
		for i := range l.Data {
			l.Data[i] = byte(r.IntN(256))
		}
		k.note(l)
		return func(p *sharedlog.Part) error { return p.StoreLog(l) }
	case n < 9 && k.last > k.first: // a snapshot
		low := k.first
		k.first = low + 1 + r.Uint64N(k.last-low)
		high := k.first - 1
		return func(p *sharedlog.Part) error { return p.DeleteRange(low, high) }
	case n < 10 && k.last > k.first: // a conflict
		last := k.last
		k.last--
		return func(p *sharedlog.Part) error { return p.DeleteRange(last, last) }
	case n < 11:
		k.term = fmt.Sprint(r.Uint64())
		term := []byte(k.term)
		return func(p *sharedlog.Part) error { return p.Set([]byte("CurrentTerm"), term) }
	default:
		k.vote = fmt.Sprint("n", r.IntN(3))
		vote := []byte(k.vote)
		return func(p *sharedlog.Part) error { return p.Set([]byte("LastVoteCand"), vote) }
	}
}

// note records the next entry.
func (k *kept) note(l *raft.Log) {
	k.first, k.last = max(k.first, 1), l.Index
	k.data[l.Index] = fmt.Sprint(l.Term, l.Data)
}

// sharedImage makes changes of a shared log, and returns an image of its files while it is open.
func sharedImage(t testing.TB, seed uint64, changes int) (image, sharedKept) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	dir, all := memoryDir(t), newSharedKept()
	l := openShared(dir, fs.New(), "boot")
	parts := map[uint32]*sharedlog.Part{}
	for name := range all {
		var err error
		parts[name], err = l.Part(name)
		require.NoError(t, err)
	}
	for range changes {
		name := 1 + r.Uint32N(3)
		require.NoError(t, all[name].plan(r)(parts[name]))
	}
	require.NoError(t, l.Close())
	// The image is that of a killed process, so the closed log is opened again.
	l = openShared(dir, fs.New(), "boot")
	p, err := l.Part(1)
	require.NoError(t, err)
	require.NoError(t, all[1].plan(r)(p))
	m := readImage(t, dir)
	require.NoError(t, l.Close())
	return m, all
}

// TestADamagedSharedLogIsRefused checks a shared log after any damage to a file. Either every part has everything that
// was acknowledged, or the whole log is refused with the reason and unchanged.
func TestADamagedSharedLogIsRefused(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for seed, changes := range []int{3, 12, 60, 400} {
		m, all := sharedImage(t, uint64(seed), changes)
		dir, n := memoryDir(t), tally{}
		for file, b := range m {
			for _, d := range damages(file, b) {
				if !*allDamages && rand.IntN(sampleOf/4) > 0 {
					continue
				}
				n.tryShared(t, dir, m, all, file, d)
			}
		}
		t.Logf("%d changes, %d damages: %d refused, %d harmless, 0 lost anything", changes, n.tried, n.refused,
			n.harmless)
		require.Positive(t, n.refused)
	}
}

func (n *tally) tryShared(t testing.TB, dir string, m image, all sharedKept, file string, d damage) {
	n.tried++
	hurt := maps.Clone(m)
	if hurt[file] = d.do(slices.Clone(m[file])); hurt[file] == nil {
		delete(hurt, file)
	}
	hurt.write(t, dir)
	l := openShared(dir, fs.New(), "boot")
	_, err := l.Part(99)
	if err != nil {
		n.refused++
		require.ErrorIs(t, err, wal.ErrCorrupt, "%s: %s", file, d.name)
		require.Equal(t, hurt, readImage(t, dir), "%s: %s: something has changed", file, d.name)
		return
	}
	n.harmless++
	lacks := all.holds(l)
	require.NoError(t, l.Close())
	require.NoError(t, lacks, "%s: %s", file, d.name)
}

// TestATornSharedWriteIsNoDamage checks that a shared log opens with everything acknowledged, whatever sectors of a
// later write of two parts are on disk.
func TestATornSharedWriteIsNoDamage(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	before, all := sharedImage(t, 1, 4)
	dir := memoryDir(t)
	before.write(t, dir)
	l := openShared(dir, fs.New(), "boot")
	one, err := l.Part(1)
	require.NoError(t, err)
	two, err := l.Part(2)
	require.NoError(t, err)
	before = readImage(t, dir)
	next := all.clone()
	var batch []*raft.Log
	for range 3 {
		k := next[1]
		e := &raft.Log{Index: k.last + 1, Term: 3, Data: fmt.Appendf(nil, "%0500d", k.last)}
		k.note(e)
		batch = append(batch, e)
	}
	require.NoError(t, one.StoreLogs(batch))
	after := readImage(t, dir)
	require.NoError(t, two.Set([]byte("CurrentTerm"), []byte("later")))
	require.NoError(t, l.Close())

	var name string
	for file := range after {
		if len(file) > 4 && file[len(file)-4:] == ".wal" && string(after[file]) != string(before[file]) {
			require.Empty(t, name, "the write must be in one segment")
			name = file
		}
	}
	whole := after[name]
	sectors := len(whole) / sector
	for arrived := range 1 << sectors {
		torn, missing := slices.Clone(before[name]), false
		for i := range sectors {
			part := torn[i*sector : (i+1)*sector]
			if arrived>>i&1 == 1 {
				copy(part, whole[i*sector:])
			}
			missing = missing || string(part) != string(whole[i*sector:(i+1)*sector])
		}
		m, want := maps.Clone(before), all
		if m[name] = torn; !missing {
			want = next
		}
		m.write(t, dir)
		for _, boot := range []string{"next boot", "boot"} {
			l := openShared(dir, fs.New(), boot)
			require.NoError(t, want.holds(l), "sectors %b", arrived)
			require.NoError(t, l.Close())
		}
	}
}

// crashFiles call at before and after each write, sync, creation and removal of a file. They make one change at a
// time.
type crashFiles struct {
	types.VFS
	mu *sync.Mutex
	at func()
}

type crashFile struct {
	types.WritableFile
	on crashFiles
}

func (v crashFiles) step(change func() error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.at()
	defer v.at()
	return change()
}

func (v crashFiles) Create(dir, name string, size uint64) (f types.WritableFile, err error) {
	err = v.step(func() error {
		f, err = v.VFS.Create(dir, name, size)
		return err
	})
	return crashFile{f, v}, err
}

func (v crashFiles) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := v.VFS.OpenWriter(dir, name)
	return crashFile{f, v}, err
}

func (v crashFiles) Delete(dir, name string) error {
	return v.step(func() error { return v.VFS.Delete(dir, name) })
}

func (f crashFile) WriteAt(b []byte, at int64) (n int, err error) {
	err = f.on.step(func() error {
		n, err = f.WritableFile.WriteAt(b, at)
		return err
	})
	return n, err
}

func (f crashFile) Sync() error { return f.on.step(f.WritableFile.Sync) }

// TestAKilledProcessLosesNothing takes an image of the files at each step of a shared log. Each image must open with
// everything acknowledged, with or without the change in progress.
func TestAKilledProcessLosesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 8))
	dir, dirOfImage := memoryDir(t), memoryDir(t)
	var mu, step sync.Mutex
	all, images := newSharedKept(), 0
	next := all.clone()
	at := func() {
		mu.Lock()
		defer mu.Unlock()
		m := readImage(t, dir)
		images++
		var errs []error
		for _, want := range []sharedKept{all, next} {
			m.write(t, dirOfImage)
			l := openShared(dirOfImage, fs.New(), "boot")
			err := want.holds(l)
			if err = errors.Join(err, l.Close()); err == nil {
				return
			}
			errs = append(errs, err)
		}
		t.Errorf("image %d: %v", images, errs)
	}
	l := openShared(dir, crashFiles{fs.New(), &step, at}, "boot")
	parts := map[uint32]*sharedlog.Part{}
	for name := range all {
		var err error
		parts[name], err = l.Part(name)
		require.NoError(t, err)
	}
	for range 120 {
		name := 1 + r.Uint32N(3)
		mu.Lock()
		next = all.clone()
		change := next[name].plan(r)
		mu.Unlock()
		require.NoError(t, change(parts[name]))
		mu.Lock()
		all = next
		mu.Unlock()
	}
	require.NoError(t, l.Close())
	require.Greater(t, images, 300)
	t.Logf("%d images", images)
}
