package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

const (
	// longestSentence is the maximum number of words of a sentence. A list of conditions belongs in a list.
	longestSentence = 30
	// figuresBegin marks the start of measured results, which another comment ends.
	figuresBegin = "<!-- figures: begin -->"
)

// sentence is a sentence of a page, or the text of a table cell.
type sentence struct {
	line int
	text string
}

var (
	listItem    = regexp.MustCompile(`^(?:[-*]|\d+\.) `)
	codeWord    = regexp.MustCompile(`\bcode\b`)
	sentenceEnd = regexp.MustCompile(`[.?!]["')*]*\s+`)
)

// sentences returns the sentences of a page. The word code replaces each code span.
func sentences(page string) (found []sentence) {
	_, _, prose := parse(page)
	var text strings.Builder
	begin := 0
	flush := func() {
		found = append(found, split(begin, text.String())...)
		text.Reset()
	}
	made := false // in a table of contents or in measured results
	for i, line := range prose {
		line = strings.TrimSpace(linkMarkup.ReplaceAllString(codeSpan.ReplaceAllString(line, "code"), "$1"))
		switch {
		case strings.HasPrefix(line, "<!--"):
			made = line+"\n" == contentsBegin || line == figuresBegin
			fallthrough
		case line == "" || made || strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<"):
			flush()
			continue
		case strings.HasPrefix(line, "|"):
			flush()
			for cell := range strings.SplitSeq(strings.Trim(line, "|"), "|") {
				found = append(found, split(i+1, cell)...)
			}
			continue
		case listItem.MatchString(line):
			flush()
			line = listItem.ReplaceAllString(line, "")
		}
		if text.Len() == 0 {
			begin = i + 1
		}
		text.WriteString(line + " ")
	}
	flush()
	return found
}

// split splits a text into sentences, which keep their final mark.
func split(line int, text string) (found []sentence) {
	for text = strings.TrimSpace(text); text != ""; {
		end := len(text)
		if at := sentenceEnd.FindStringIndex(text); at != nil {
			end = at[1]
		}
		found = append(found, sentence{line, strings.TrimSpace(text[:end])})
		text = text[end:]
	}
	return found
}

// problems returns the English problems of a page, each with its line.
func problems(name string) (found []string, err error) {
	page, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for _, s := range sentences(string(page)) {
		if words := len(strings.Fields(s.text)) - len(codeWord.FindAllString(s.text, -1)); words > longestSentence {
			found = append(found, fmt.Sprintf("%s:%d: %d words in a sentence: split it: %.60s", name, s.line,
				words, s.text))
		}
		for _, r := range rules {
			if wrong := r.pattern.FindString(s.text); wrong != "" && (r.questions || !strings.HasSuffix(s.text, "?")) {
				found = append(found, fmt.Sprintf("%s:%d: %q: %s", name, s.line, wrong, r.instead))
			}
		}
	}
	return found, nil
}
