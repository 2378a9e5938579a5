package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnchors(t *testing.T) {
	headings, _, prose := parse("# A page\n\n## `--max-memory`\n\n```sh\n# no heading\n```\n" +
		"## What's [new](x.md), café?\n## A page\n")
	require.Equal(t, []heading{
		{1, "A page", "a-page"},
		{2, "`--max-memory`", "--max-memory"},
		{2, "What's new, café?", "whats-new-café"},
		{2, "A page", "a-page-1"},
	}, headings)
	require.Equal(t, "", prose[5])
}

func TestContentsAreWritten(t *testing.T) {
	page := "# P\n" + contentsBegin + "old\n" + contentsEnd + "## One\n### First\n### Second\n## Two\n"
	got, err := withContents(page)
	require.NoError(t, err)
	table := "- [One](#one): [First](#first) · [Second](#second)\n- [Two](#two)\n"
	require.Contains(t, got, contentsBegin+table+contentsEnd)
	_, err = withContents("# P\n" + contentsBegin)
	require.ErrorIs(t, err, errMarkers)
}

func TestBrokenLinksAreFound(t *testing.T) {
	dir := t.TempDir()
	page := filepath.Join(dir, "a.md")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.md"), []byte("# B\n## Part\n"), 0o600))
	text := "# A\n[1](b.md#part) [2](b.md#other) [3](c.md)\n" +
		"[4](#a) [5](#b) `[6](d.md)` [7](https://example.com/x)\n```\n[8](e.md)\n```\n"
	require.NoError(t, os.WriteFile(page, []byte(text), 0o600))
	broken, err := brokenLinks(page)
	require.NoError(t, err)
	require.Equal(t, []string{
		page + ":2: b.md#other: no such heading", page + ":2: c.md: no such file", page + ":3: #b: no such heading",
	}, broken)
}

func TestBrokenCitationsAreFound(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "docs"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "docs", "b.md"), []byte("# B\n"), 0o600))
	code := filepath.Join(dir, "x.go")
	text := strings.ReplaceAll("see @/b.md#b\nand @/b.md#c, @/d.md\n", "@", "docs")
	require.NoError(t, os.WriteFile(code, []byte(text), 0o600))
	broken, err := brokenCitations(dir, code)
	require.NoError(t, err)
	require.Len(t, broken, 2)
}

func TestCommandsThatCannotBePasted(t *testing.T) {
	for text, want := range map[string]int{
		"```sh\nmake run # the server\n```\n":                       1,
		"```sh\n# the server\nmake run\n```\n":                      0,
		"```sh\n$ make run\n```\n":                                  1,
		"```sh\nweir serve --join ...\n```\n":                       1,
		"```sh\necho 'a # b' \"c ... d\"\n```\n":                    0,
		"```sh\ncat > f <<'END'\nlisten: x # why\nEND\nmake\n```\n": 0,
		"```sh\ncat > f <<END\nx\nEND\nmake # y\n```\n":             1,
		"```\nmake run\n```\n":                                      1,
		"```\n> PING\nPONG\n```\n":                                  0,
		"```yaml\na: b # c\n```\n":                                  0,
	} {
		_, blocks, _ := parse(text)
		require.Len(t, unpasteable("page", blocks), want, text)
	}
}
