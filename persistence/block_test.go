package persistence

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/weir-project/weir/engine"
)

// blockOf returns a block with these changes.
func blockOf(changes ...engine.Change) []byte {
	var b block
	for _, c := range changes {
		b.add(c)
	}
	return b.bytes
}

// changesOf returns copies of the changes in a block.
func changesOf(block []byte) (all []engine.Change, err error) {
	err = changes(block, func(c engine.Change) error {
		all = append(all, engine.Change{Key: slices.Clone(c.Key), Value: slices.Clone(c.Value)})
		return nil
	})
	return all, err
}

func TestBlocksKeepTheirChanges(t *testing.T) {
	text := rapid.OneOf(
		rapid.SliceOfN(rapid.SampledFrom([]byte("ab")), 0, 40),
		rapid.Map(rapid.IntRange(0, 9999), func(n int) []byte { return fmt.Appendf(nil, "lkey:%012d", n) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		changes := rapid.SliceOf(rapid.Custom(func(t *rapid.T) engine.Change {
			c := engine.Change{Key: append([]byte{}, text.Draw(t, "key")...)}
			if rapid.Bool().Draw(t, "stays") {
				c.Value = append([]byte{}, text.Draw(t, "value")...)
			}
			return c
		})).Draw(t, "changes")
		got, err := changesOf(blockOf(changes...))
		require.NoError(t, err)
		require.Len(t, got, len(changes))
		for i, c := range changes {
			require.Equal(t, string(c.Key), string(got[i].Key))
			require.Equal(t, string(c.Value), string(got[i].Value))
			require.Equal(t, c.Value == nil, got[i].Value == nil)
		}
	})
}

func TestBlocksDoNotRepeatThemselves(t *testing.T) {
	value := []byte("a kind and a limit, state 1")
	changes := []engine.Change{
		{Key: []byte("lkey:000000000001"), Value: value},
		{Key: []byte("lkey:000000000029"), Value: []byte("a kind and a limit, state 2")},
		{Key: []byte("lkey:000000000020")}, {Key: []byte("lkey:000000000021"), Value: value},
	}
	want := 2 + 17 + 2 + len(value) + // the whole first entry
		2 + 2 + 2 + 1 + // two digits, one digit
		2 + 1 + 1 +
		2 + 1 + 2 + 1
	require.Len(t, blockOf(changes...), want)
}

func TestSharedLen(t *testing.T) {
	for same := range 20 {
		for a := range 3 {
			for b := range 3 {
				left, right := make([]byte, same+a), make([]byte, same+b)
				if a > 0 {
					left[same] = 1
				}
				if b > 0 {
					right[same] = 2
				}
				require.Equal(t, same, sharedLen(left, right), "%v %v", left, right)
			}
		}
	}
	require.Equal(t, maxShared, sharedLen(make([]byte, 200), make([]byte, 200)))
}

// TestABlockWithAWrongSharedLengthIsRefused checks that a block is invalid if an entry shares more bytes than
// maxShared.
func TestABlockWithAWrongSharedLengthIsRefused(t *testing.T) {
	long := string(make([]byte, maxShared+1))
	for shared, want := range map[int]error{maxShared: nil, maxShared + 1: ErrDamaged} {
		text := append([]byte{0, 1, 'k', 0x81, 1, 0}, long...) // a key of one letter and a value of 128 bytes
		text = append(text, 1, 0, 1)                           // the same key, and a value without new bytes
		_, err := changesOf(binary.AppendUvarint(text, uint64(shared)))
		require.ErrorIs(t, err, want)
	}
}

func FuzzBlock(f *testing.F) {
	removal, change := engine.Change{Key: []byte("lk")}, engine.Change{Key: []byte("lkey"), Value: []byte("value")}
	f.Add(blockOf(removal, change, removal, change))
	f.Fuzz(func(t *testing.T, block []byte) {
		all, err := changesOf(block)
		if err == nil {
			again := blockOf(all...)
			require.LessOrEqual(t, len(again), len(block),
				"lengths may be encoded longer than necessary, but not shorter")
			same, err := changesOf(again)
			require.NoError(t, err)
			require.Equal(t, all, same)
		}
		g := gathered{at: engine.Stamp{NowNs: 1e18}, to: engine.NewTable(engine.Options{})}
		if changes(block, g.add) == nil {
			_ = g.load()
		}
	})
}
