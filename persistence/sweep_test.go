package persistence

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
)

// wholeSweep makes a sweep damage every byte instead of a sample. make test-damage sets it.
var wholeSweep = os.Getenv("WEIRTEST_DAMAGE") != ""

const sectorBytes = 512

// damage is one way to damage a file. A nil content deletes the file.
type damage struct {
	what    string
	content []byte
}

// damages returns the damages of a file: flipped bits, zeroed, erased and swapped sectors, truncations, and its
// deletion.
func damages(content []byte) (all []damage) {
	add := func(bad []byte, format string, args ...any) {
		if !bytes.Equal(bad, content) {
			all = append(all, damage{fmt.Sprintf(format, args...), bad})
		}
	}
	for _, i := range sweepPoints(len(content)) {
		bits := []byte{1 << (i % 8)}
		if wholeSweep {
			bits = append(bits, 0xff)
		}
		for _, b := range bits {
			bad := bytes.Clone(content)
			bad[i] ^= b
			add(bad, "byte %d ^ %#x", i, b)
		}
		add(content[:i:i], "cut to %d bytes", i)
	}
	for from := 0; from < len(content); from += sectorBytes {
		end := min(from+sectorBytes, len(content))
		bad := bytes.Clone(content)
		clear(bad[from:end])
		add(bad, "zeros from %d to %d", from, end)
		bad = bytes.Clone(content)
		for i := from; i < end; i++ {
			bad[i] = 0xff
		}
		add(bad, "ones from %d to %d", from, end)
		for other := end; other+sectorBytes <= len(content); other += sectorBytes {
			bad := bytes.Clone(content)
			copy(bad[from:end], content[other:other+sectorBytes])
			copy(bad[other:other+sectorBytes], content[from:end])
			add(bad, "sectors at %d and %d swapped", from, other)
		}
	}
	return append(all, damage{what: "deleted"})
}

// sweepPoints returns every byte in a whole sweep. Otherwise it returns a sample with both ends.
func sweepPoints(n int) (points []int) {
	rng := rand.New(rand.NewPCG(uint64(n), 11))
	const most = 12
	for i := range n {
		if wholeSweep || i < 4 || n-i <= 4 || rng.IntN(n) < most {
			points = append(points, i)
		}
	}
	return points
}

// tally counts the outcomes of the damages of one kind of file.
type tally struct{ tried, refused, harmless, lost int }

type tallies struct {
	kinds   map[string]*tally
	options map[string]int // how often each content of Pebble's OPTIONS was damaged
}

func newTallies() tallies { return tallies{map[string]*tally{}, map[string]int{}} }

func (c tallies) of(kind string) *tally {
	if c.kinds[kind] == nil {
		c.kinds[kind] = &tally{}
	}
	return c.kinds[kind]
}

// log prints the outcomes, and fails the test if anything was lost.
func (c tallies) log(t *testing.T) {
	t.Helper()
	var sum tally
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		n := c.kinds[kind]
		t.Logf("%-15s %7d damages: %7d refused, %7d harmless, %d lost", kind, n.tried, n.refused, n.harmless, n.lost)
		sum.tried, sum.refused, sum.harmless, sum.lost = sum.tried+n.tried, sum.refused+n.refused,
			sum.harmless+n.harmless, sum.lost+n.lost
	}
	t.Logf("%-15s %7d damages: %7d refused, %7d harmless, %d lost", "all", sum.tried, sum.refused,
		sum.harmless, sum.lost)
	require.Zero(t, sum.lost, "no damage may lose acknowledged data")
}

// verdict is the result of starting from a damaged directory.
type verdict struct {
	refusal error // nil if it started
	lost    string
}

// sweepDirectory damages each file below dir in each way, and lets start judge the result.
func sweepDirectory(t *testing.T, fs vfs.FS, counts tallies, start func(*vfs.MemFS) verdict) {
	t.Helper()
	shown := 0
	for _, path := range files(t, fs, dataDir) {
		content := readFile(t, fs, path)
		if kindOf(path) == "OPTIONS" && counts.options[string(content)] >= 2 {
			continue // this content was damaged often enough in other directories
		}
		counts.options[string(content)]++
		for _, d := range damages(content) {
			broken := copyDir(t, fs)
			if d.content == nil && d.what == "deleted" {
				require.NoError(t, broken.Remove(path))
			} else {
				writeFile(t, broken, path, d.content)
			}
			before := contents(t, broken)
			v := start(broken)
			n := counts.of(kindOf(path))
			n.tried++
			switch {
			case v.lost != "":
				n.lost++
				if shown++; shown <= 10 {
					t.Errorf("%s, %s: %s", path, d.what, v.lost)
				}
			case v.refusal == nil:
				n.harmless++
			default:
				n.refused++
				requireRefusal(t, v.refusal, path, d.what)
				require.Equal(t, before, contents(t, broken), "%s, %s: the refusal (%v) changed the directory", path,
					d.what, v.refusal)
			}
		}
	}
}

// requireRefusal requires an error that says what to do.
func requireRefusal(t *testing.T, err error, path, what string) {
	t.Helper()
	for _, known := range []error{ErrDamaged, ErrForeign, ErrNewer, ErrOlder} {
		if strings.Contains(err.Error(), known.Error()) {
			return
		}
	}
	t.Fatalf("%s, %s: the refusal does not say what to do: %v", path, what, err)
}

// contents returns every file below the data directory except locks.
func contents(t *testing.T, fs vfs.FS) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, path := range files(t, fs, dataDir) {
		all[path] = string(readFile(t, fs, path))
	}
	return all
}
