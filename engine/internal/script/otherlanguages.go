package script

// These libraries count in other languages: ulule/limiter and go-zero (Go), limits and fastapi-limiter (Python).

// ululeIncr has the arguments count, window ms. It answers the count and the remaining time.
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

// ululePeek answers the count and the remaining time, or zeros without a key.
func ululePeek(r *Run) {
	r.Admitted = true
	if r.live {
		r.answers(r.count(), r.pttl())
	}
}

// limitsIncr has the arguments window s, amount. It answers the count.
func limitsIncr(r *Run) {
	r.Admitted = true
	amount := r.whole(1)
	hits := r.incrBy(amount)
	if hits == amount {
		r.expireMs(r.seconds(0))
	}
	r.answers(hits)
}

// fastapiHit has the arguments limit, window ms. It answers 0 if it admits, else the remaining time.
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

// zeroPeriod has the arguments limit, window s. It answers 1 below the limit, 2 at the limit, and 0 above it.
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

// refused answers 0, which means a denial.
func refused(*Run, int64) {}
