package hashslot_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-project/weir/engine/hashslot"
)

// TestSlotsOfRedis checks that the slots are those that CLUSTER KEYSLOT of Redis 7 answers.
func TestSlotsOfRedis(t *testing.T) {
	for key, slot := range map[string]uint16{
		"123456789": 12739, "foo": 12182, "bar": 5061, "": 0, "a": 15495,
		"{user1000}.following": 3443, "{user1000}.followers": 3443, "user1000": 3443,
		"foo{}{bar}": 8363, "foo{{bar}}zap": 4015, "foo{bar}{zap}": 5061, "foo{bar": 15278, "{}": 15257,
	} {
		require.Equal(t, slot, hashslot.Of([]byte(key)), "%q", key)
	}
}

// TestTableOfRemainders compares the table with a bit-by-bit computation.
func TestTableOfRemainders(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		key := make([]byte, random.IntN(40))
		for i := range key {
			if key[i] = byte(random.Uint32()); key[i] == '{' {
				key[i] = '}'
			}
		}
		require.Equal(t, bitByBit(key)%hashslot.Count, hashslot.Of(key), "%q", key)
	}
}

func bitByBit(b []byte) (crc uint16) {
	for _, c := range b {
		for bit := 7; bit >= 0; bit-- {
			carry := crc>>15 != uint16(c>>bit&1)
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
	}
	return crc
}

// TestRangesCoverEverySlotOnce checks that each slot is in the range of the group that Group returns, and in no other.
func TestRangesCoverEverySlotOnce(t *testing.T) {
	for groups := 1; groups <= hashslot.MaxGroups; groups *= 2 {
		require.True(t, hashslot.ValidGroups(groups))
		slot := 0
		for g := range groups {
			r := hashslot.OfGroup(g, groups)
			require.EqualValues(t, slot, r.First, "group %d of %d", g, groups)
			for ; slot <= int(r.Last); slot++ {
				require.True(t, r.Has(uint16(slot)))
				require.Equal(t, g, hashslot.Group(uint16(slot), groups), "slot %d", slot)
			}
			require.Equal(t, hashslot.Count/groups, r.Len())
			require.False(t, r.First > 0 && r.Has(r.First-1) || r.Has(r.Last+1))
		}
		require.Equal(t, hashslot.Count, slot)
	}
	for _, groups := range []int{0, -1, 3, 6, 2 * hashslot.MaxGroups} {
		require.False(t, hashslot.ValidGroups(groups), "%d", groups)
	}
	require.Equal(t, hashslot.All, hashslot.OfGroup(0, 1))
}

func TestTagIsInItsSlot(t *testing.T) {
	for slot := range uint16(hashslot.Count) {
		tag := hashslot.Tag(slot)
		require.Equal(t, slot, hashslot.Of([]byte(tag)))
		require.Equal(t, slot, hashslot.Of([]byte("{"+tag+"}x")))
		require.LessOrEqual(t, len(tag), 4)
	}
}
