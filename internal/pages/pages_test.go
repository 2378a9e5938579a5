package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

// made are directories whose files do not belong to the repository.
var made = []string{"bin", "dist", "node_modules", "target", ".git"}

// files lists the files of the repository with one of the extensions, without built files.
func files(t *testing.T, extensions ...string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (slices.Contains(made, name) || strings.HasPrefix(name, "weir-")) {
			return filepath.SkipDir
		}
		if !entry.IsDir() && slices.Contains(extensions, filepath.Ext(name)) {
			found = append(found, path)
		}
		return nil
	}))
	require.NotEmpty(t, found)
	return found
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(text)
}

// TestLinks checks that every link to a page, a heading or a file has a target.
func TestLinks(t *testing.T) {
	for _, name := range files(t, ".md") {
		broken, err := brokenLinks(name)
		require.NoError(t, err)
		for _, one := range broken {
			t.Error(one)
		}
	}
}

// TestCitations checks that a page or a heading that code or a message cites exists.
func TestCitations(t *testing.T) {
	for _, name := range files(t, ".go", ".yaml", ".yml", ".service", ".sh", ".js", ".html", ".txt", ".json") {
		broken, err := brokenCitations(root, name)
		require.NoError(t, err)
		for _, one := range broken {
			t.Error(one)
		}
	}
}

func TestCommandsCanBePasted(t *testing.T) {
	for _, name := range files(t, ".md") {
		_, blocks, _ := parse(read(t, name))
		for _, one := range unpasteable(name, blocks) {
			t.Error(one)
		}
	}
}

// TestContents checks that a page longer than two screens has a table of contents, and that each table is up to date.
func TestContents(t *testing.T) {
	var pages []string
	for _, pattern := range []string{
		"/ARCHITECTURE.md", "/docs/*.md", "/bench/*.md", "/examples/systems/requirements.md",
	} {
		found, err := filepath.Glob(root + pattern)
		require.NoError(t, err)
		pages = append(pages, found...)
	}
	for _, name := range pages {
		page := read(t, name)
		if !strings.Contains(page, contentsBegin) && strings.Count(page, "\n") > longPage {
			t.Errorf("%s is longer than %d lines and has no table of contents: "+
				"write the lines\n%s%sbelow its first paragraph, then make docs", name, longPage, contentsBegin,
				contentsEnd)
		}
		want, err := withContents(page)
		require.NoError(t, err, name)
		if want != page {
			t.Errorf("%s: its table of contents is not that of its headings: make docs writes it anew", name)
		}
	}
}

// mostWords is the budget of docs/. A page that needs more words takes them from repetition on the others.
const mostWords = 55_000

func TestDocsStayShort(t *testing.T) {
	pages, err := filepath.Glob(root + "/docs/*.md")
	require.NoError(t, err)
	words := 0
	for _, name := range pages {
		words += len(strings.Fields(read(t, name)))
	}
	require.LessOrEqual(t, words, mostWords)
}

// TestIndexIsComplete checks that the index names every page. A reader finds no other page, here nor on the site.
func TestIndexIsComplete(t *testing.T) {
	index := read(t, root+"/docs/README.md")
	pages, err := filepath.Glob(root + "/docs/*.md")
	require.NoError(t, err)
	for _, name := range pages {
		if base := filepath.Base(name); base != "README.md" {
			require.Contains(t, index, "]("+base+")")
		}
	}
}

// TestPaths checks that a file or a directory that a page names exists.
func TestPaths(t *testing.T) {
	for _, name := range files(t, ".md") {
		if strings.HasPrefix(name, root+"/examples/") {
			continue // these pages also name directories of their reader
		}
		missing, err := missingPaths(root, name)
		require.NoError(t, err)
		for _, one := range missing {
			t.Error(one)
		}
	}
}

// testSpan is a code span that names a test.
var testSpan = regexp.MustCompile("`(?:[\\w./]*\\.)?(Test[A-Z]\\w*)`")

// TestNamesOfTests checks that a test that a page names exists, so that a page is corrected when a test is renamed.
func TestNamesOfTests(t *testing.T) {
	tests := map[string]bool{}
	for _, name := range files(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(read(t, name), -1) {
				tests[match[1]] = true
			}
		}
	}
	for _, name := range files(t, ".md") {
		for _, match := range testSpan.FindAllStringSubmatch(read(t, name), -1) {
			assert.True(t, tests[match[1]], "%s names the test %s, which does not exist", name, match[1])
		}
	}
}
