// Package nearest finds what a misspelled name was meant to be.
package nearest

import "strings"

// maxEdits is how many letters a name may differ by and still be meant: two catch a
// letter too many, a letter missing and two letters exchanged.
const maxEdits = 2

// Names returns those of known that word was most likely meant to be: the ones with the
// fewest edits, at most maxEdits and fewer than half of the word, or else those that word
// begins. Case does not matter.
func Names(word string, known []string) (near []string) {
	word = strings.ToLower(word)
	least := min(maxEdits, (len(word)-1)/2)
	for _, name := range known {
		switch n := Edits(word, strings.ToLower(name)); {
		case n < least:
			near, least = []string{name}, n
		case n == least && n > 0 || n == 0:
			near = append(near, name)
		}
	}
	if len(near) > 0 || len(word) <= maxEdits {
		return near
	}
	for _, name := range known {
		if strings.HasPrefix(strings.ToLower(name), word) {
			near = append(near, name)
		}
	}
	return near
}

// Edits returns how many letters must be added, removed or replaced to make b of a: the
// Levenshtein distance.
func Edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
