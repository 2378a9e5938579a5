package wallog_test

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/internal/race"
	"github.com/weir-project/weir/raftstore/wallog"
)

var allDamages = flag.Bool(
	"wallog.damage", false, "TestADamagedLogIsRefused tries every bit of every log, not a sample")

const (
	smallSegment = 4 << 10
	sampleOf     = 401 // an ordinary run tries one of so many damages
	sector       = 512
)

// image is the directory of a log after kill -9 or a loss of power.
type image map[string][]byte

func readImage(t testing.TB, dir string) image {
	t.Helper()
	all := image{}
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue // the log was about to remove it
		}
		require.NoError(t, err)
		all[name.Name()] = b
	}
	return all
}

func (m image) write(t testing.TB, dir string) {
	t.Helper()
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Mkdir(dir, 0o755))
	for name, b := range m {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), b, 0o600))
	}
}

// kept is the content that a log must keep.
type kept struct {
	first, last uint64
	data        map[uint64]string
	term, vote  string
}

func (k *kept) store(t testing.TB, w *wallog.Log, term uint64, sizes ...int) {
	t.Helper()
	var all [][]byte
	for n, size := range sizes {
		data := make([]byte, size)
		for i := range data {
			data[i] = byte((k.last+uint64(n)+1)*31 + uint64(i)*7 + term + 1)
		}
		all = append(all, data)
	}
	k.storeData(t, w, term, all...)
}

func (k *kept) storeData(t testing.TB, w *wallog.Log, term uint64, all ...[]byte) {
	t.Helper()
	var batch []*raft.Log
	for _, data := range all {
		k.last++
		batch = append(batch, &raft.Log{Index: k.last, Term: term, Data: data})
		k.data[k.last] = fmt.Sprint(term, data)
	}
	require.NoError(t, w.StoreLogs(batch))
}

// log is a log of its own, or a part of a shared log.
type log interface {
	raft.LogStore
	Get(key []byte) ([]byte, error)
}

// holds returns an error that names what a log lacks of the content.
func (k *kept) holds(w log) error {
	first, err1 := w.FirstIndex()
	last, err2 := w.LastIndex()
	if err := errors.Join(err1, err2); err != nil || first != k.first || last != k.last {
		return fmt.Errorf("entries %d to %d instead of %d to %d (%w)", first, last, k.first, k.last, err)
	}
	for i := max(first, 1); i <= last; i++ {
		var l raft.Log
		if err := w.GetLog(i, &l); err != nil || fmt.Sprint(l.Term, l.Data) != k.data[i] {
			return fmt.Errorf("entry %d is another: %w", i, err)
		}
	}
	term, err1 := w.Get([]byte("CurrentTerm"))
	vote, err2 := w.Get([]byte("LastVoteCand"))
	if err := errors.Join(err1, err2); err != nil || string(term) != k.term || string(vote) != k.vote {
		return fmt.Errorf("term %q and vote %q instead of %q and %q (%w)", term, vote, k.term, k.vote, err)
	}
	return nil
}

// logsToDamage are logs in every state that a crash can leave.
var logsToDamage = map[string]func(testing.TB, *wallog.Log, *kept){
	"one entry": func(t testing.TB, w *wallog.Log, k *kept) { k.store(t, w, 1, 30) },
	"one segment": func(t testing.TB, w *wallog.Log, k *kept) {
		for i := range 8 {
			k.store(t, w, 1, 10+40*i, 30)
		}
	},
	"a long last entry": func(t testing.TB, w *wallog.Log, k *kept) {
		k.store(t, w, 1, 100)
		k.store(t, w, 1, 20, 1500)
	},
	"several segments": func(t testing.TB, w *wallog.Log, k *kept) {
		for i := range 24 {
			k.store(t, w, 1, 200+20*i)
		}
	},
	"right after a rotation": func(t testing.TB, w *wallog.Log, k *kept) {
		for range 4 {
			k.store(t, w, 1, 900)
		}
	},
	"right after a snapshot": func(t testing.TB, w *wallog.Log, k *kept) {
		for range 20 {
			k.store(t, w, 1, 400)
		}
		require.NoError(t, w.DeleteRange(1, 12))
		k.first = 13
	},
	"after a conflict": func(t testing.TB, w *wallog.Log, k *kept) {
		for range 12 {
			k.store(t, w, 1, 400)
		}
		require.NoError(t, w.DeleteRange(10, 12))
		k.last = 9
		k.store(t, w, 2, 100, 120)
	},
}

// logImage creates a log with the content that fill writes, and takes an image while the log is open.
func logImage(t testing.TB, fill func(testing.TB, *wallog.Log, *kept)) (image, *kept) {
	t.Helper()
	dir := t.TempDir()
	w, err := wallog.OpenOn(dir, fs.New(), smallSegment, true, "boot")
	require.NoError(t, err)
	k := &kept{first: 1, data: map[uint64]string{}, term: "12345678", vote: "the candidate"}
	require.NoError(t, w.Set([]byte("CurrentTerm"), []byte(k.term)))
	require.NoError(t, w.Set([]byte("LastVoteCand"), []byte(k.vote)))
	fill(t, w, k)
	m := readImage(t, dir)
	require.NoError(t, w.Close())
	return m, k
}

// A damage changes a copy of a file.
type damage struct {
	name string
	do   func(b []byte) []byte
}

// damages are all damages that are tried on a file. They flip every bit that a segment uses, and one bit of each byte
// of other files. They zero every sector, cut the file at every length (other files at each 16th), swap neighbouring
// and distant sectors, and remove the file.
func damages(name string, b []byte) (all []damage) {
	isSegment := strings.HasSuffix(name, ".wal")
	used := len(b)
	for used > 0 && b[used-1] == 0 {
		used--
	}
	used = min(used+64, len(b)) // and some of the zeros after it
	for i := range used * 8 {
		if !isSegment && i%8 != i/8%8 {
			continue
		}
		all = append(all, damage{fmt.Sprintf("bit %d of byte %d", i%8, i/8), func(b []byte) []byte {
			b[i/8] ^= 1 << (i % 8)
			return b
		}})
	}
	for at := 0; at < used; at += sector {
		end := min(at+sector, len(b))
		all = append(all, damage{fmt.Sprint("zeros at ", at), func(b []byte) []byte {
			clear(b[at:end])
			return b
		}})
		for _, other := range []int{at + sector, (at + 3*sector) % max(used/sector*sector, 1)} {
			if end == at+sector && other != at && other+sector <= len(b) {
				all = append(all, damage{fmt.Sprintf("sectors at %d and %d swapped", at, other), func(b []byte) []byte {
					first := slices.Clone(b[at:end])
					copy(b[at:end], b[other:other+sector])
					copy(b[other:other+sector], first)
					return b
				}})
			}
		}
	}
	for size := range used {
		if !isSegment && size%16 > 0 {
			continue
		}
		all = append(all, damage{fmt.Sprint("cut to ", size), func(b []byte) []byte { return b[:size] }})
	}
	return append(all, damage{"removed", func([]byte) []byte { return nil }})
}

// tally counts the outcomes of the damages.
type tally struct{ tried, refused, harmless int }

// try damages one file of an image and opens the log. boot is the boot ID of the machine then.
func (n *tally) try(t testing.TB, dir string, m image, k *kept, name string, d damage, boot string) {
	n.tried++
	hurt := maps.Clone(m)
	if hurt[name] = d.do(slices.Clone(m[name])); hurt[name] == nil {
		delete(hurt, name)
	}
	hurt.write(t, dir)
	w, err := wallog.OpenOn(dir, fs.New(), smallSegment, true, boot)
	if err != nil {
		n.refused++
		require.ErrorIs(t, err, wal.ErrCorrupt, "%s: %s", name, d.name)
		require.Equal(t, hurt, readImage(t, dir), "%s: %s: something has changed", name, d.name)
		return
	}
	n.harmless++
	lacks := k.holds(w)
	require.NoError(t, w.Close())
	require.NoError(t, lacks, "%s: %s, %s", name, d.name, boot)
}

// memoryDir returns a directory in memory if possible, because a log is opened some 100,000 times.
func memoryDir(t testing.TB) string {
	dir, err := os.MkdirTemp("/dev/shm", "weir-wallog-")
	if err != nil {
		return filepath.Join(t.TempDir(), "log")
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "log")
}

// TestADamagedLogIsRefused checks the log after any damage to a file, after a kill and after a loss of power. It must
// either have everything that was acknowledged, or be refused with the reason and unchanged.
func TestADamagedLogIsRefused(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	start, all := time.Now(), tally{}
	for name, fill := range logsToDamage {
		t.Run(name, func(t *testing.T) {
			m, k := logImage(t, fill)
			dir, n := memoryDir(t), tally{}
			for file, b := range m {
				for _, d := range damages(file, b) {
					if !*allDamages && rand.IntN(sampleOf) > 0 &&
						!(file == metadb.FileName && name == "one segment" && d.inHead()) {
						continue
					}
					n.try(t, dir, m, k, file, d, "boot")
					if file != metadb.FileName { // a reboot makes no difference to the metadata
						n.try(t, dir, m, k, file, d, "next boot")
					}
				}
			}
			t.Logf("%d damages: %d refused, %d harmless, 0 lost anything", n.tried, n.refused, n.harmless)
			all.tried, all.refused, all.harmless = all.tried+n.tried, all.refused+n.refused, all.harmless+n.harmless
		})
	}
	t.Logf("all: %d damages: %d refused, %d harmless, 0 lost anything, in %v", all.tried, all.refused, all.harmless,
		time.Since(start).Round(time.Millisecond))
}

// TestATornWriteIsNoDamage checks that the log opens with everything acknowledged, whatever sectors of a later write
// are on disk. A loss of power may leave any of them.
func TestATornWriteIsNoDamage(t *testing.T) {
	race.Skip(t, race.OneGoroutine)
	for _, size := range []int{30, 700, 1500} {
		var before image
		var acknowledged kept
		after, k := logImage(t, func(t testing.TB, w *wallog.Log, k *kept) {
			k.store(t, w, 1, 100, 20)
			before, acknowledged = readImage(t, w.Dir()), *k
			acknowledged.data = maps.Clone(k.data)
			k.store(t, w, 1, 20, size)
		})
		name := fmt.Sprintf("%020d-%016x.wal", 1, 0)
		whole := after[name]
		sectors := len(whole) / sector
		dir, opened := memoryDir(t), 0
		for arrived := range 1 << sectors {
			torn, missing := slices.Clone(before[name]), false
			for i := range sectors {
				part := torn[i*sector : (i+1)*sector]
				if arrived>>i&1 == 1 {
					copy(part, whole[i*sector:])
				}
				missing = missing || string(part) != string(whole[i*sector:(i+1)*sector])
			}
			m, want := maps.Clone(before), &acknowledged
			if m[name] = torn; !missing {
				want = k
			}
			m.write(t, dir)
			for _, boot := range []string{"next boot", "next boot", "boot"} {
				w, err := wallog.OpenOn(dir, fs.New(), smallSegment, true, boot)
				require.NoError(t, err, "sectors %b of %d bytes", arrived, size)
				require.NoError(t, want.holds(w))
				require.NoError(t, w.Close())
			}
			opened++
		}
		require.Equal(t, 256, opened)
	}
}

// TestAnEntryDamagedMeanwhileIsCorrupt checks that an entry which is damaged while the log is open is not returned as
// another entry.
func TestAnEntryDamagedMeanwhileIsCorrupt(t *testing.T) {
	dir := t.TempDir()
	w, err := wallog.OpenOn(dir, fs.New(), smallSegment, true, "boot")
	require.NoError(t, err)
	defer w.Close()
	(&kept{data: map[uint64]string{}}).store(t, w, 1, 100)
	path := filepath.Join(dir, fmt.Sprintf("%020d-%016x.wal", 1, 0))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	for at, value := range map[int]byte{40: 2, 43: 0xff} { // the entry's index, and the length of its data
		hurt := slices.Clone(b)
		hurt[at] = value
		require.NoError(t, os.WriteFile(path, hurt, 0o600))
		err := w.GetLog(1, new(raft.Log))
		require.ErrorIs(t, err, wal.ErrCorrupt)
		require.ErrorContains(t, err, "log entry 1 is corrupt")
	}
}

// inHead reports whether a damage is a flipped bit in what bbolt calls its meta pages.
func (d damage) inHead() bool {
	var bit, at int
	n, _ := fmt.Sscanf(d.name, "bit %d of byte %d", &bit, &at)
	return n == 2 && at < 2*os.Getpagesize() && at%os.Getpagesize() < 80
}
