package main

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// heading is a heading of a page, with the anchor that GitHub gives it.
type heading struct {
	level  int
	text   string // as written, without links
	anchor string
}

// block is the text between two fences.
type block struct {
	line     int // of the opening fence
	language string
	lines    []string
}

var linkMarkup = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// parse returns the headings, the fenced blocks, and the lines of a page. A line of a block is empty in prose.
func parse(page string) (headings []heading, blocks []block, prose []string) {
	seen := map[string]int{}
	var open *block
	for i, line := range strings.Split(page, "\n") {
		fence, isFence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case isFence && open == nil:
			open = &block{line: i + 1, language: fence}
		case isFence:
			blocks, open = append(blocks, *open), nil
		case open != nil:
			open.lines = append(open.lines, line)
		default:
			prose = append(prose, line)
			if level := len(line) - len(strings.TrimLeft(line, "#")); level > 0 &&
				strings.HasPrefix(line[level:], " ") {
				text := linkMarkup.ReplaceAllString(strings.TrimSpace(line[level:]), "$1")
				headings = append(headings, heading{level, text, anchor(text, seen)})
			}
			continue
		}
		prose = append(prose, "")
	}
	return headings, blocks, prose
}

// anchor returns the anchor that GitHub gives a heading. seen counts the anchors of the page, because the second of two
// equal ones ends in -1.
func anchor(text string, seen map[string]int) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, text)
	n := seen[name]
	seen[name]++
	if n > 0 {
		name += "-" + strconv.Itoa(n)
	}
	return name
}
