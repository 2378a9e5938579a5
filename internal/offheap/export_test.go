//go:build linux && !race

package offheap

// Pretend makes the kernel's pages as large as given, and lets it drop none unless drops. The function returned ends
// that.
func Pretend(pageSize int, drops bool) (end func()) {
	size, probe := pageBytes, dropsPages
	pageBytes, dropsPages = pageSize, func() bool { return drops }
	return func() { pageBytes, dropsPages = size, probe }
}
