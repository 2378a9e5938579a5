package chaos

import "time"

const (
	// fakeBehind is how old the state is that a READONLY read returns, and that a read returns under mistake
	// readsBehind.
	fakeBehind = 40 * time.Millisecond
	// fakeToldMs is the age that the fake reports under mistake ageUnderstated.
	fakeToldMs = 3
)

// was records the used units of a limit that never refills, from a point in time on.
type was struct {
	at          time.Time
	limit, used int64
}

// read answers RL.INSPECT and EXISTS.
func (f *fake) read(command, key string, readOnly bool) any {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, staleMs := time.Now(), int64(0)
	if readOnly {
		staleMs = fakeBehind.Milliseconds()
		if f.mistake == ageUnderstated {
			staleMs = fakeToldMs
		}
	}
	if readOnly || f.mistake == readsBehind {
		at = at.Add(-fakeBehind)
	}
	seen := was{}
	for _, past := range f.past[key] {
		if !past.at.After(at) {
			seen = past
		}
	}
	switch {
	case command == "EXISTS":
		return min(seen.used, 1)
	case seen.used == 0:
		return []any{"stale_ms", staleMs}
	}
	return []any{"used", seen.used, "remaining", seen.limit - seen.used, "stale_ms", staleMs}
}
