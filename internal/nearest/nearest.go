// Package nearest finds the known name that is most similar to a misspelled one.
package nearest

import (
	"slices"
	"strings"
)

// maxEdits is how many letters a name may differ by and still be meant: two catch two
// slips of the fingers, in a long name.
const maxEdits = 2

// Names returns those of known that word was most likely meant to be, in the order of the
// alphabet: names that end in a dot and the word; or else the ones with the fewest edits,
// at most maxEdits and fewer than half of the word; or else those that word begins. Case
// does not matter.
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

// tooMany is what edits returns for all that are more than maxEdits.
const tooMany = maxEdits + 1

// edits returns how many letters must be added, removed, replaced, or swapped with their
// neighbor to make b of a, no letter twice: the optimal string alignment distance, up to
// tooMany. A server asks for each wrong name of each client, so nothing is allocated, and
// of the table of distances only the diagonal and maxEdits beside it are computed: the
// rest are greater anyway.
func edits(a, b string) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if max(len(a), len(b))-min(len(a), len(b)) > maxEdits {
		return tooMany
	}
	var before, last, row band
	for at := range last {
		last[at] = max(at-maxEdits, maxEdits-at) // of an empty a; what is left of the table is not looked at
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
