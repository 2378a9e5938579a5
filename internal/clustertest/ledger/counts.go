package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Counts lists a map, sorted by name.
func Counts[K ~string, V int | int64](m map[K]V) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(parts, ", ")
}
