// Package nearest finds the known name that is most similar to a misspelled one.
package nearest

import (
	"slices"
	"strings"
)

// maxEdits is the maximum number of edits between a name and its misspelling. It covers two typing errors in a long
// name.
const maxEdits = 2

// Names returns the names of known that word most likely means, in alphabetical order. It prefers names that end in a
// dot and the word. Otherwise it returns the names with the fewest edits, at most maxEdits and fewer than half of the
// word. Otherwise it returns names that begin with the word. It ignores case.
func Names(word string, known []string) (near []string) {
	word = strings.ToLower(word)
	if word == "" {
		return nil
	}
	for _, near := range [][]string{
		matching(known, func(name string) bool { return strings.HasSuffix(name, "."+word) }),
		fewestEdits(word, known),
		matching(known, func(name string) bool { return len(word) > maxEdits && strings.HasPrefix(name, word) }),
	} {
		if len(near) > 0 {
			slices.Sort(near)
			return near
		}
	}
	return nil
}

func matching(known []string, match func(lower string) bool) (found []string) {
	for _, name := range known {
		if match(strings.ToLower(name)) {
			found = append(found, name)
		}
	}
	return found
}

func fewestEdits(word string, known []string) (near []string) {
	least := min(maxEdits, (len(word)-1)/2)
	for _, name := range known {
		if max(len(name), len(word))-min(len(name), len(word)) > least {
			continue
		}
		switch n := edits(word, strings.ToLower(name)); {
		case n < least:
			near, least = []string{name}, n
		case n == least && n > 0 || n == 0:
			near = append(near, name)
		}
	}
	return near
}

// tooMany is the result of edits for more than maxEdits.
const tooMany = maxEdits + 1

// edits returns the number of letters to add, remove, replace, or swap with their neighbor to turn a into b, each
// letter at most once. This is the optimal string alignment distance, up to tooMany. A server computes it for each
// wrong name of each client, so it does not allocate. It computes only the diagonal of the table and maxEdits cells
// beside it, because all other distances are greater.
func edits(a, b string) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if max(len(a), len(b))-min(len(a), len(b)) > maxEdits {
		return tooMany
	}
	var before, last, row band
	for at := range last {
		last[at] = max(at-maxEdits, maxEdits-at) // for an empty a; the cells to the left are not used
	}
	for i := 1; i <= len(a); i++ {
		least := tooMany
		for at := range row {
			row[at] = tooMany
			if j := i + at - maxEdits; j == 0 {
				row[at] = i
			} else if j > 0 && j <= len(b) {
				row[at] = 1 + min(last[at], beside(&row, at-1), beside(&last, at+1))
				if a[i-1] == b[j-1] {
					row[at] = min(row[at], last[at])
				}
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					row[at] = min(row[at], before[at]+1)
				}
			}
			least = min(least, row[at])
		}
		if least >= tooMany {
			return tooMany
		}
		before, last = last, row
	}
	return min(last[len(b)-len(a)+maxEdits], tooMany)
}

// band is a row of distances around the diagonal, which is in the middle.
type band [2*maxEdits + 1]int

func beside(row *band, at int) int {
	if at < 0 || at >= len(row) {
		return tooMany
	}
	return row[at]
}
