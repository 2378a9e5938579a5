package trie_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/internal/trie"
)

// TestATrieIsASet compares tries with a map, over hashes that begin alike or are equal. Every tenth trie must stay as
// it was.
func TestATrieIsASet(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var set trie.Trie[int]
	want := map[int]uint64{}
	type copied struct {
		set  trie.Trie[int]
		want map[int]uint64
	}
	var all []copied
	for i := range 4000 {
		if len(want) > 0 && r.IntN(5) < 2 {
			v := slices.Sorted(maps.Keys(want))[r.IntN(len(want))]
			set = set.Without(want[v], v)
			delete(want, v)
		} else {
			hash := r.Uint64N(6)<<(4*r.IntN(16)) | r.Uint64N(40)<<58
			set, want[i] = set.With(hash, i), hash
		}
		if i%10 == 0 {
			all = append(all, copied{set, maps.Clone(want)})
		}
	}
	for len(want) > 0 {
		v := slices.Sorted(maps.Keys(want))[0]
		set = set.Without(want[v], v)
		delete(want, v)
	}
	require.Equal(t, trie.Trie[int]{}, set)
	for _, c := range all {
		from, got, last := r.Uint64(), map[int]uint64{}, uint64(0)
		for hash, v := range c.set.From(0) {
			require.GreaterOrEqual(t, hash, last)
			got[v], last = hash, hash
		}
		require.Equal(t, c.want, got)
		for hash, v := range c.set.From(from) {
			require.GreaterOrEqual(t, hash, from)
			delete(got, v)
		}
		for v, hash := range got {
			require.Less(t, hash, from, "a walk from %d missed %d", from, v)
			same := 0
			for l := c.set.Of(hash); l != nil; l = l.Next {
				require.Equal(t, hash, c.want[l.Value])
				same++
			}
			n := 0
			for _, h := range c.want {
				if h == hash {
					n++
				}
			}
			require.Equal(t, n, same)
		}
		require.Nil(t, c.set.Of(12345))
	}
}
