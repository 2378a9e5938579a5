package main

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	codeSpan   = regexp.MustCompile("`[^`]*`")
)

// brokenLinks returns the broken links of a page to files and headings of the repository, each with its line.
func brokenLinks(name string) (broken []string, err error) {
	page, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	_, _, prose := parse(string(page))
	for i, line := range prose {
		line = codeSpan.ReplaceAllString(line, "code")
		for _, match := range linkTarget.FindAllStringSubmatch(line, -1) {
			if problem := follow(name, match[1]); problem != "" {
				broken = append(broken, fmt.Sprintf("%s:%d: %s: %s", name, i+1, match[1], problem))
			}
		}
	}
	return broken, nil
}

// follow returns why a link on the page is broken, or "".
func follow(page, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	if u.Scheme != "" || u.Host != "" {
		return ""
	}
	file := page
	if u.Path != "" {
		file = filepath.Join(filepath.Dir(page), u.Path)
	}
	return missing(file, u.Fragment)
}

// missing returns an error text if a file does not exist, or lacks the heading.
func missing(file, fragment string) string {
	text, err := os.ReadFile(file)
	if _, statErr := os.Stat(file); statErr != nil {
		return "no such file"
	}
	if fragment == "" || filepath.Ext(file) != ".md" {
		return ""
	}
	if err != nil {
		return err.Error()
	}
	headings, _, _ := parse(string(text))
	if !slices.ContainsFunc(headings, func(h heading) bool { return h.anchor == fragment }) {
		return "no such heading"
	}
	return ""
}

// citation matches the form in which code and messages cite a page: docs/operations.md#memory.
var citation = regexp.MustCompile(`\b(?:docs|bench|examples/systems)/[\w-]+\.md(?:#([\w-]+))?`)

// brokenCitations returns the broken citations of pages in a file that is not a page.
func brokenCitations(root, name string) (broken []string, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		for _, cited := range citation.FindAllString(line, -1) {
			file, fragment, _ := strings.Cut(cited, "#")
			if problem := missing(filepath.Join(root, file), fragment); problem != "" {
				broken = append(broken, fmt.Sprintf("%s:%d: %s: %s", name, i+1, cited, problem))
			}
		}
	}
	return broken, nil
}
