package main

import (
	"errors"
	"strings"
)

const (
	contentsBegin = "<!-- contents -->\n"
	contentsEnd   = "<!-- /contents -->\n"
	// longPage is the maximum number of lines of a page without a table of contents: two screens.
	longPage = 100
	// contentsWidth is the width at which a line of the table is broken.
	contentsWidth = 120
)

var errMarkers = errors.New("<!-- contents --> without <!-- /contents --> behind it: put both in lines of their own")

// withContents returns the page with a new table of contents between the two markers. It returns a page without markers
// unchanged.
func withContents(page string) (string, error) {
	before, rest, found := strings.Cut(page, contentsBegin)
	if !found {
		return page, nil
	}
	_, after, found := strings.Cut(rest, contentsEnd)
	if !found {
		return "", errMarkers
	}
	headings, _, _ := parse(page)
	return before + contentsBegin + contents(headings) + contentsEnd + after, nil
}

// contents lists the chapters of a page, each with its sections in the same item.
func contents(headings []heading) string {
	var b strings.Builder
	var item []string
	for _, h := range headings {
		link := "[" + h.text + "](#" + h.anchor + ")"
		switch h.level {
		case 2:
			writeItem(&b, item)
			item = []string{link}
		case 3:
			item = append(item, link)
		}
	}
	writeItem(&b, item)
	return b.String()
}

// writeItem writes a chapter and its sections as an item of a list, in lines of at most
// contentsWidth where the links allow it.
func writeItem(b *strings.Builder, links []string) {
	line := "-"
	for i, link := range links {
		switch {
		case i == 0 && len(links) > 1:
			link += ":"
		case i > 0 && i < len(links)-1:
			link += " ·"
		}
		if len(line)+1+len(link) > contentsWidth {
			b.WriteString(line + "\n")
			line = " "
		}
		line += " " + link
	}
	if len(links) > 0 {
		b.WriteString(line + "\n")
	}
}
