package script

import (
	"strconv"

	"github.com/weir-project/weir/engine/internal/arith"
)

// Laravel's Redis::throttle keeps a window in a hash, by the clock of the client. Its scripts compare times as texts,
// so all fractions of a second are equal. Here a time has its whole seconds, and half a second more if it has a
// fraction.
const (
	DurationTake ID = 57 + iota // now s, whole now s, window s, limit
	DurationLook
)

const shapeDuration shapes = 44 // start s, end s, count

// inDuration reports whether the window has begun and is not over.
func (r *Run) inDuration() bool {
	w := &r.record.words
	return r.live && float64(w[0]) <= r.arg[0] && r.arg[0] <= float64(w[1])
}

// durationTake answers whether it admits, the end of the window, what is left, and whether the window began before.
func durationTake(r *Run) {
	w, limit, within := &r.record.words, r.whole(3), r.inDuration()
	if within {
		w[2], r.Effect = w[2]+1, wrote
	} else {
		r.put(r.whole(1))
		w[1], w[2] = w[0]+r.whole(2), 1
		r.expireMs(2 * r.seconds(2))
	}
	r.Admitted = !within || w[2] <= limit
	r.answers(arith.OneIf(r.Admitted), w[1], limit-w[2], arith.OneIf(within))
}

// durationLook answers the end of the window and how many are left. Without a window it answers 0 and the end of one
// that would begin now, as the script does.
func durationLook(r *Run) {
	r.Admitted = true
	if within := r.inDuration(); within {
		r.answers(1, r.record.words[1], r.whole(3)-r.record.words[2], 1)
		return
	}
	r.answers(0, r.whole(1)+r.whole(2))
}

func durationBlocked(r *Run, leftMs int64) {
	r.answers(0, r.whole(1)+(blockedForMs(leftMs)+999)/1000, 0, 1)
}

func (r *Record) durationFields() HashFields {
	text := func(i int) string { return strconv.FormatInt(r.words[i], 10) }
	return HashFields{{"start", text(0)}, {"end", text(1)}, {"count", text(2)}}
}
