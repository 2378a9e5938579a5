package script

import (
	"math"
	"sort"

	"github.com/weir-project/weir/engine/internal/arith"
)

// These scripts keep the time of each hit, by the clock of the client: limits (Python) in a list for its moving
// windows, async-ratelimiter (Node) in a sorted set. The times are doubles, newest first, and stored as a byte string.
// The clocks of clients differ, so the times of the list do not always descend.
const (
	MovingTake  ID = 49 + iota // now s, limit, window s, amount
	MovingLook                 // begin of the window s, limit
	MovingCount                // as MovingLook, sent before 5.0
	AsyncTake                  // now ms, window ms, limit, whether only to look
)

// shapeList and shapeSet are the times as a list and as a set.
const (
	shapeList shapes = 48
	shapeSet  shapes = 49
)

const hitBytes = 8

// MaxHits bounds the limits of these scripts, so that the times fit a byte string. They take 8 bytes a hit.
const MaxHits = MaxValueBytes / hitBytes

// mostHits returns argument i, a limit, within 1 and MaxHits.
func (r *Run) mostHits(i int) int { return int(min(max(r.whole(i), 1), MaxHits)) }

func (r *Run) hits() int {
	if !r.live {
		return 0
	}
	return len(r.kept) / hitBytes
}

func (r *Run) hit(i int) float64 { return math.Float64frombits(le.Uint64(r.kept[hitBytes*i:])) }

// keepHits inserts a time n times before hit i of the newest hits, keeps up to most hits, and sets the expiry.
func (r *Run) keepHits(newest, i, n int, at float64, most int, windowMs int64) {
	b := append(r.kept[:hitBytes*newest], make([]byte, hitBytes*n)...)
	copy(b[hitBytes*(i+n):], b[hitBytes*i:])
	for k := i; k < i+n; k++ {
		le.PutUint64(b[hitBytes*k:], math.Float64bits(at))
	}
	r.kept, r.fresh = b, b[:min(len(b), hitBytes*most)]
	r.live, r.Effect, r.rewrites = true, wrote, true
	r.expireMs(windowMs)
}

// movingTake answers whether it admits.
func movingTake(r *Run) {
	limit, amount, hits := r.mostHits(1), int(max(r.whole(3), 0)), r.hits()
	i := limit - amount
	if i < 0 || i < hits && r.hit(i) >= r.arg[0]-r.arg[2] {
		return
	}
	r.Admitted = true
	r.answers(1)
	if hits+amount > 0 {
		r.keepHits(hits, 0, amount, r.arg[0], limit, r.seconds(2))
	}
}

// movingLook answers the number of hits in the window, and the time of the oldest of them. It searches as the script
// does, which assumes that the times descend.
func movingLook(r *Run) {
	r.Admitted = true
	oldest, hits := -1, r.hits()
	for low, high := 0, int(r.whole(1))-1; low <= high; {
		if mid := (low + high) / 2; mid < hits && r.hit(mid) >= r.arg[0] {
			oldest, low = mid, mid+1
		} else {
			high = mid - 1
		}
	}
	if oldest >= 0 {
		r.answers(int64(oldest)+1, toBits(r.hit(oldest)))
	}
}

// movingCount answers the number of hits down to the first that is before the window, and the earliest and the newest
// time of them.
func movingCount(r *Run) {
	r.Admitted = true
	n, hits, earliest := 0, min(r.hits(), int(r.whole(1))+1), math.Inf(1)
	for ; n < hits && r.hit(n) >= r.arg[0]; n++ {
		earliest = min(earliest, r.hit(n))
	}
	if n > 0 {
		r.answers(int64(n), toBits(earliest), toBits(r.hit(0)))
	}
}

// movingBlocked answers a full window that begins so that it ends with the block.
func movingBlocked(r *Run, leftMs int64) {
	at := toBits(r.arg[0] + float64(blockedForMs(leftMs))/1000)
	r.answers(blockedCount, at, at)
}

// asyncTake answers the remaining requests before this one, the time at which the oldest leaves the window in s, and
// the limit.
func asyncTake(r *Run) {
	nowMs, windowMs, limit, hits := r.arg[0], r.arg[1], r.mostHits(2), r.hits()
	n, oldestMs := hits, nowMs
	for n > 0 && r.hit(n-1) <= nowMs-windowMs {
		n--
	}
	if n > 0 {
		oldestMs = r.hit(n - 1)
	}
	r.Admitted = n < limit
	r.answers(int64(max(limit-n, 0)), arith.Truncate(math.Floor((oldestMs+windowMs)/1000)), int64(limit))
	switch looks := r.arg[3] != 0; {
	case r.Admitted && !looks:
		i := sort.Search(n, func(i int) bool { return r.hit(i) <= nowMs })
		r.keepHits(n, i, int(arith.OneIf(i == n || r.hit(i) != nowMs)), nowMs, limit, r.whole(1))
	case n == 0 && r.live:
		r.live, r.Effect = false, Deleted
	case n < hits:
		r.fresh, r.rewrites, r.Effect = r.kept[:hitBytes*n], true, wrote
	}
}

func asyncBlocked(r *Run, leftMs int64) {
	r.answers(0, arith.Truncate(math.Floor((r.arg[0]+float64(blockedForMs(leftMs)))/1000)), r.whole(2))
}
