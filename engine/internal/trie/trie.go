// Package trie has an immutable set of values by their hashes: a hash array mapped trie (Bagwell, 2001).
//
// It promises that a change leaves all older tries as they were. So readers need no lock, and a trie is a copy of the
// set that costs nothing. A change copies one node for each level: 5 of them for 100,000 values.
package trie

import (
	"iter"
	"math/bits"
	"slices"
)

const (
	digitBits = 4
	top       = 64 - digitBits // the shift of the first digit of a hash
)

// Trie is the set. The zero value is empty. The hashes should be random.
type Trie[V comparable] struct{ root child[V] }

// child is a part of a trie: nothing, a node, or a list of values with one hash.
type child[V comparable] struct {
	node *node[V]
	leaf *Leaf[V]
}

// node has the values whose hashes begin alike. It has more than one hash.
type node[V comparable] struct {
	used     uint16 // the digits that have a child
	children []child[V]
}

// Leaf is a value in a trie. Next is another value of the same hash.
type Leaf[V comparable] struct {
	hash  uint64
	Value V
	Next  *Leaf[V]
}

// place returns the bit of the digit of a hash at a shift, and the index of its child.
func (n *node[V]) place(hash uint64, shift int) (bit uint16, i int) {
	bit = 1 << (hash >> shift % (1 << digitBits))
	return bit, bits.OnesCount16(n.used & (bit - 1))
}

// Of returns the values of a hash, or nil.
func (t Trie[V]) Of(hash uint64) *Leaf[V] {
	c := t.root
	for shift := top; c.node != nil; shift -= digitBits {
		bit, i := c.node.place(hash, shift)
		if c.node.used&bit == 0 {
			return nil
		}
		c = c.node.children[i]
	}
	if c.leaf == nil || c.leaf.hash != hash {
		return nil
	}
	return c.leaf
}

// With returns the trie with one more value.
func (t Trie[V]) With(hash uint64, v V) Trie[V] {
	return Trie[V]{t.root.with(top, &Leaf[V]{hash: hash, Value: v})}
}

func (c child[V]) with(shift int, l *Leaf[V]) child[V] {
	switch {
	case c.leaf != nil && c.leaf.hash == l.hash:
		return child[V]{leaf: &Leaf[V]{l.hash, l.Value, c.leaf}}
	case c.leaf != nil:
		return child[V]{node: &node[V]{}}.with(shift, c.leaf).with(shift, l)
	case c.node == nil:
		return child[V]{leaf: l}
	}
	bit, i := c.node.place(l.hash, shift)
	if c.node.used&bit == 0 {
		children := make([]child[V], 0, len(c.node.children)+1)
		children = append(append(children, c.node.children[:i]...), child[V]{leaf: l})
		return child[V]{node: &node[V]{c.node.used | bit, append(children, c.node.children[i:]...)}}
	}
	children := slices.Clone(c.node.children)
	children[i] = children[i].with(shift-digitBits, l)
	return child[V]{node: &node[V]{c.node.used, children}}
}

// Without returns the trie without a value that it has.
func (t Trie[V]) Without(hash uint64, v V) Trie[V] { return Trie[V]{t.root.without(top, hash, v)} }

func (c child[V]) without(shift int, hash uint64, v V) child[V] {
	if c.leaf != nil {
		return child[V]{leaf: c.leaf.without(v)}
	}
	bit, i := c.node.place(hash, shift)
	next := c.node.children[i].without(shift-digitBits, hash, v)
	children := slices.Clone(c.node.children)
	if next != (child[V]{}) {
		children[i] = next
	} else if children = slices.Delete(children, i, i+1); len(children) == 0 {
		return child[V]{}
	}
	if len(children) == 1 && children[0].leaf != nil {
		return children[0]
	}
	used := c.node.used
	if next == (child[V]{}) {
		used &^= bit
	}
	return child[V]{node: &node[V]{used, children}}
}

func (l *Leaf[V]) without(v V) *Leaf[V] {
	if l == nil || l.Value == v {
		return l.next()
	}
	return &Leaf[V]{l.hash, l.Value, l.Next.without(v)}
}

func (l *Leaf[V]) next() *Leaf[V] {
	if l == nil {
		return nil
	}
	return l.Next
}

// From returns the values with this hash and higher ones, in the order of their hashes.
func (t Trie[V]) From(hash uint64) iter.Seq2[uint64, V] {
	return func(yield func(uint64, V) bool) { t.root.from(top, hash, yield) }
}

// from calls yield for the values, until that returns false. It returns the last result of yield.
func (c child[V]) from(shift int, hash uint64, yield func(uint64, V) bool) bool {
	if c.node == nil {
		for l := c.leaf; l != nil && l.hash >= hash; l = l.Next {
			if !yield(l.hash, l.Value) {
				return false
			}
		}
		return true
	}
	bit, i := c.node.place(hash, shift)
	if c.node.used&bit != 0 {
		if !c.node.children[i].from(shift-digitBits, hash, yield) {
			return false
		}
		i++
	}
	for ; i < len(c.node.children); i++ {
		if !c.node.children[i].from(shift-digitBits, 0, yield) {
			return false
		}
	}
	return true
}
