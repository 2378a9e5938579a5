package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const source = `package sample

func admit(n, most int, open bool) bool {
	if n > most && open {
		note(n)
		return false
	}
	switch {
	case n == most:
		return open
	}
	return true
}

var notes []int

func note(n int) { notes = append(notes, n) }
`

const sampleTest = `package sample

import "testing"

func TestAdmit(t *testing.T) {
	if admit(3, 2, true) || !admit(1, 2, false) {
		t.Fatal("wrong")
	}
}

func TestFails(t *testing.T) { t.Fatal("always") }
`

// sample writes a module with one package and enters it.
func sample(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("go.mod", []byte("module sample\n\ngo 1.24\n"), 0o600))
	require.NoError(t, os.WriteFile("sample.go", []byte(source), 0o600))
	require.NoError(t, os.WriteFile("sample_test.go", []byte(sampleTest), 0o600))
}

func TestSites(t *testing.T) {
	sites, err := sitesIn("sample.go", []byte(source))
	require.NoError(t, err)
	var kinds []string
	for _, s := range sites {
		kinds = append(kinds, s.kind+": "+s.text)
	}
	require.Equal(t, []string{
		"never: n > most && open", "left of && only: n > most && open", "right of && only: n > most && open",
		">= for >: n > most", "drop call: note(n)", "never: n == most", "!= for ==: n == most",
	}, kinds)
	require.Equal(t, "sample.go | admit | drop call | note(n)", sites[4].key())
}

func TestARunTellsWhatTestsNotice(t *testing.T) {
	sample(t)
	require.NoError(t, os.WriteFile(
		"equivalent.txt", []byte("# why\nsample.go | admit | >= for > | n > most -- a reason\n"), 0o600))
	var out bytes.Buffer
	survived, err := runAll(&out, options{budget: longestTest, known: "equivalent.txt"}, []string{"."})
	require.NoError(t, err)
	said := out.String()
	require.Contains(t, said, "1 tests pass without a mutant") // not TestFails, which fails without a mutant
	require.Contains(t, said, "noticed: sample.go:4: admit: never: n > most && open: TestAdmit")
	require.Contains(t, said, "SURVIVED: sample.go:4: admit: left of && only: n > most && open (1 tests reach it)")
	require.Contains(t, said, "SURVIVED: sample.go:5: admit: drop call: note(n) (1 tests reach it)")
	require.Contains(t, said, "equivalent: sample.go:4: admit: >= for >: n > most: a reason")
	require.Equal(t, strings.Count(said, "SURVIVED"), survived)
}

func TestSitesThatAreAlike(t *testing.T) {
	sites, err := sitesIn("twice.go", []byte("package p\n\nfunc f() { g(); g() }\n\nfunc h() { g() }\n"))
	require.NoError(t, err)
	var keys []string
	for _, s := range sites {
		keys = append(keys, s.key())
	}
	require.Equal(t, []string{"twice.go | f | drop call | g()", "twice.go | f | drop call | g() #2",
		"twice.go | h | drop call | g()"}, keys)
}

func TestTheSitesOfARunCanBeFiltered(t *testing.T) {
	sites, err := sitesIn("sample.go", []byte(source))
	require.NoError(t, err)
	require.Len(t, draw(sites, options{}), 7)
	require.Len(t, draw(sites, options{count: 3}), 3)
	require.Equal(t, sites[4:6], draw(sites, options{match: regexp.MustCompile("drop call|:9: .*never")}))
}

func TestSitesThatDoNotCompileAreLeftOut(t *testing.T) {
	sample(t)
	named := "\ntype answer bool\n\nfunc less(a, b int) answer { return a < b }\n"
	require.NoError(t, os.WriteFile("named.go", []byte("package sample\n"+named), 0o600))
	sites, err := sitesOf(".")
	require.NoError(t, err)
	var s suite
	s.dir, s.binary = ".", filepath.Join(t.TempDir(), "tests")
	require.NoError(t, s.build(t.TempDir(), ".", sites))
	for _, one := range sites {
		require.Equal(t, one.file == "named.go", one.dropped, one.String())
	}
}
