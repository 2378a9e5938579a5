// Package nearest finds what a misspelled name was meant to be.
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
		switch n := Edits(word, strings.ToLower(name)); {
		case n < least:
			near, least = []string{name}, n
		case n == least && n > 0 || n == 0:
			near = append(near, name)
		}
	}
	return near
}

// Edits returns how many letters must be added, removed, replaced, or swapped with their
// neighbor to make b of a, no letter twice: the optimal string alignment distance.
func Edits(a, b string) int {
	var before []int // the row before last
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replaced := last[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}
			row[j] = min(replaced, row[j-1]+1, last[j]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
