package server

import "time"

// What a node that does not lead does with operations; see Config.Redirect.
const (
	RedirectForward = "forward"
	RedirectMoved   = "moved"
)

// ceilMs rounds a duration up to milliseconds, so that an age is never told too
// small.
func ceilMs(d time.Duration) int64 {
	return int64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}
