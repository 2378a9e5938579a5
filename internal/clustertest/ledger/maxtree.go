package ledger

import "math"

// maxTree is a segment tree. It holds numbers by position, adds to all positions from a given one on, and returns the
// maximum. Updates take O(log n).
type maxTree struct {
	leaves int
	best   []float64 // of the subtree, without the additions of its ancestors
	at     []int     // position of best
	add    []float64 // for the whole subtree
}

func newMaxTree(n int) *maxTree {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	t := &maxTree{leaves: leaves, best: make([]float64, 2*leaves), at: make([]int, 2*leaves),
		add: make([]float64, 2*leaves)}
	for i := range t.best {
		t.best[i] = math.Inf(-1)
	}
	for i := range leaves {
		t.at[leaves+i] = i
	}
	return t
}

// raise activates position i, with v and the previous additions to i.
func (t *maxTree) raise(i int, v float64) {
	node := t.leaves + i
	t.best[node] = v + t.add[node]
	t.pull(node / 2)
}

// addFrom adds v to every position from i on.
func (t *maxTree) addFrom(i int, v float64) {
	lo, hi := t.leaves+i, 2*t.leaves-1
	for l, r := lo, hi; l <= r; l, r = l/2, r/2 {
		if l%2 == 1 {
			t.lift(l, v)
			l++
		}
		if r%2 == 0 {
			t.lift(r, v)
			r--
		}
	}
	t.pull(lo / 2)
	t.pull(hi / 2)
}

func (t *maxTree) lift(node int, v float64) {
	t.best[node] += v
	t.add[node] += v
}

// pull computes a node and its ancestors again.
func (t *maxTree) pull(node int) {
	for ; node >= 1; node /= 2 {
		child := 2 * node
		if t.best[child+1] > t.best[child] {
			child++
		}
		t.best[node], t.at[node] = t.best[child]+t.add[node], t.at[child]
	}
}

func (t *maxTree) max() (value float64, position int) { return t.best[1], t.at[1] }
