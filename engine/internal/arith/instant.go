package arith

// Never is the instant that never comes.
const Never = int64(1<<63 - 1)

// NsToMs converts a span to milliseconds, rounded up. It returns -1 for Never.
func NsToMs(ns int64) int64 {
	if ns == Never {
		return -1
	}
	return ns/1e6 + OneIf(ns%1e6 != 0)
}

// AddNs returns at+span, at most Never. at is not negative.
func AddNs(at, span int64) int64 {
	if span > Never-at {
		return Never
	}
	return at + span
}

// OneIf returns 1 for true and 0 for false.
func OneIf(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
