package engine

import (
	"crypto/rand"
	"crypto/sha256"
	"math/bits"
)

// HashSeed is the secret of the hashes of keys. Two tables with one seed have their keys in one order, whatever their
// numbers of shards, so a cursor of Scan means the same to both. A client that knows the seed can make keys whose
// hashes collide. So no reply and no log line shows it.
type HashSeed [32]byte

// NewHashSeed returns a random seed.
func NewHashSeed() (s HashSeed) {
	_, _ = rand.Read(s[:]) // it never fails
	return s
}

// keyHash is a hash function of byte strings: the fold of 64-bit products of wyhash, with secret constants. Go's own
// maps use the same fold on processors without AES.
type keyHash [4]uint64

// hashFor derives one of the hash functions of a seed.
func (s HashSeed) hashFor(purpose string) (h keyHash) {
	sum := sha256.Sum256(append([]byte(purpose), s[:]...))
	for i := range h {
		h[i] = le.Uint64(sum[8*i:])
	}
	return h
}

// fold returns the product of two numbers, its upper half folded into its lower half.
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func (h *keyHash) of(b []byte) uint64 {
	var first, last uint64
	sum, n := h[0], len(b)
	switch {
	case n > 16:
		for left := b; len(left) > 16; left = left[16:] {
			sum = fold(le.Uint64(left)^h[1], le.Uint64(left[8:])^sum)
		}
		first, last = le.Uint64(b[n-16:]), le.Uint64(b[n-8:])
	case n >= 8:
		first, last = le.Uint64(b), le.Uint64(b[n-8:])
	case n >= 4:
		first, last = uint64(le.Uint32(b)), uint64(le.Uint32(b[n-4:]))
	case n > 0:
		first = uint64(b[0])<<16 | uint64(b[n/2])<<8 | uint64(b[n-1])
	}
	return fold(h[3]^uint64(n), fold(first^h[2], last^sum))
}
