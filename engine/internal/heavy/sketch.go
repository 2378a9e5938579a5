package heavy

import (
	"bytes"
	"slices"
)

// sketchSlots is the number of keys in a sketch. With 16 shards a table has about 500 keys, and every key with a
// 500th of all units is among them. Searching the slots of a shard reads a few cache lines.
const sketchSlots = 32

// sketch finds the heaviest keys of a stream in bounded memory. It implements Space-Saving (Metwally, Agrawal and El
// Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005) for units instead of
// single events.
//
// A key without a slot takes the slot of the key with the fewest units, and inherits these units. Let w be the sum of
// all counted units. The count of a key in a slot is not below its units in the stream, and exceeds them by at most
// w/sketchSlots. over has a bound of this error for each key. Every key with more than w/sketchSlots units in the
// stream has a slot.
type sketch struct {
	used   int   // slots with a key
	total  int64 // all counted units
	hashes [sketchSlots]uint64
	units  [sketchSlots]int64
	over   [sketchSlots]int64 // the inherited part of units
	keys   [sketchSlots][]byte
}

// add counts units for a key with this hash. It copies the key if it keeps it.
func (k *sketch) add(hash uint64, key []byte, units int64) {
	k.total += units
	i := slices.Index(k.hashes[:k.used], hash)
	if i < 0 {
		i = k.claim()
		k.hashes[i], k.keys[i] = hash, append(k.keys[i][:0], key...)
	}
	k.units[i] += units
}

// claim returns a slot for a new key.
func (k *sketch) claim() int {
	if k.used < sketchSlots {
		k.used++
		return k.used - 1
	}
	least := 0
	for i := range k.units {
		if k.units[i] < k.units[least] {
			least = i
		}
	}
	k.over[least] = k.units[least]
	return least
}

// halve halves all counts, n times.
func (k *sketch) halve(n int) {
	k.total >>= n
	for i := range k.used {
		k.units[i] >>= n
		k.over[i] >>= n
	}
}

// appendTo appends the keys whose counts are not zero.
func (k *sketch) appendTo(all []Hitter) []Hitter {
	for i := range k.used {
		if k.units[i] > 0 {
			all = append(all, Hitter{Key: bytes.Clone(k.keys[i]), Units: k.units[i], Error: k.over[i]})
		}
	}
	return all
}
