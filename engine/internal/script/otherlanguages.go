package script

// Libraries that count in other languages: ulule/limiter and go-zero (Go), limits and
// fastapi-limiter (Python).

// ululeIncr: count, window ms. Answers the count and the time left.
func ululeIncr(r *Run) {
	r.Admitted = true
	count, windowMs := r.whole(0), r.whole(1)
	hits := r.incrBy(count)
	if hits == count {
		if windowMs > 0 {
			r.expireMs(windowMs)
		}
		r.answers(hits, windowMs)
		return
	}
	r.answers(hits, r.pttl())
}

// ululePeek answers the count and the time left, zeros without a key.
func ululePeek(r *Run) {
	r.Admitted = true
	if r.live {
		r.answers(r.count(), r.pttl())
	}
}

// limitsIncr: window s, amount. Answers the count.
func limitsIncr(r *Run) {
	r.Admitted = true
	amount := r.whole(1)
	hits := r.incrBy(amount)
	if hits == amount {
		r.expireMs(r.seconds(0))
	}
	r.answers(hits)
}

// fastapiHit: limit, window ms. Answers 0 when admitted, else the time left.
func fastapiHit(r *Run) {
	hits := r.count()
	switch {
	case hits <= 0:
		r.put(1)
		r.expireMs(r.whole(1))
	case float64(hits)+1 > r.arg[0]:
		r.answers(r.pttl())
		return
	default:
		r.incrBy(1)
	}
	r.Admitted = true
}

func fastapiBlocked(r *Run, leftMs int64) { r.answers(max(blockedForMs(leftMs), 1)) }

// zeroPeriod: limit, window s. Answers 1 below the limit, 2 at it, 0 above.
func zeroPeriod(r *Run) {
	hits := r.incrBy(1)
	if hits == 1 {
		r.expireMs(r.seconds(1))
	}
	r.Admitted = float64(hits) <= r.arg[0]
	switch {
	case float64(hits) < r.arg[0]:
		r.answers(1)
	case float64(hits) == r.arg[0]:
		r.answers(2)
	}
}

// refused answers 0, and says so.
func refused(*Run, int64) {}
