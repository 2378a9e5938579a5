package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// options are the flags of a run.
type options struct {
	count  int
	seed   uint64
	match  *regexp.Regexp // nil: all
	with   string
	budget time.Duration
	known  string
}

func main() {
	var o options
	flag.IntVar(&o.count, "count", 50, "mutants to try of each package, drawn at random; 0 tries all")
	flag.Uint64Var(&o.seed, "seed", 1, "the draw")
	flag.Func("match", "try only sites whose line in the report matches this regular expression",
		func(text string) (err error) {
			o.match, err = regexp.Compile(text)
			return err
		})
	flag.StringVar(&o.with, "with", "",
		"packages, by comma, whose tests are asked about what those of the package itself do not notice")
	flag.DurationVar(&o.budget, "budget", time.Minute, "how long the tests that are run for one mutant take without it")
	flag.StringVar(&o.known, "equivalent", "internal/mutants/equivalent.txt",
		"mutants that do what the source does, with the reason")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: mutants [flags] ./package ...")
		os.Exit(2)
	}
	survived, err := runAll(os.Stdout, o, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if survived > 0 {
		os.Exit(1)
	}
}

// runAll runs mutants of each package, and returns how many no test detected.
func runAll(out io.Writer, o options, packages []string) (survived int, err error) {
	known, err := readEquivalent(o.known)
	if err != nil {
		return 0, err
	}
	for _, pkg := range packages {
		n, err := runPackage(out, o, pkg, known)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", pkg, err)
		}
		survived += n
	}
	return survived, nil
}

// tally counts the mutants of a package by their outcome.
type tally struct{ noticed, survived, equivalent int }

func runPackage(out io.Writer, o options, pkg string, known map[string]string) (survived int, err error) {
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(work)
	sites, err := sitesOf(pkg)
	if err != nil {
		return 0, err
	}
	if len(sites) == 0 {
		return 0, fmt.Errorf("no place for a mutant")
	}
	suites, err := buildSuites(out, work, pkg, o, sites)
	if err != nil {
		return 0, err
	}
	var counts tally
	tried := draw(sites, o)
	for _, s := range tried {
		reason, equivalent := known[s.key()]
		if equivalent {
			counts.equivalent++
			fmt.Fprintf(out, "equivalent: %v: %s\n", s, reason)
			continue
		}
		by, err := suites.notice(s.id, o.budget)
		switch {
		case err != nil:
			return 0, err
		case by != "":
			counts.noticed++
			fmt.Fprintf(out, "noticed: %v: %s\n", s, by)
		default:
			counts.survived++
			fmt.Fprintf(out, "SURVIVED: %v (%s)\n", s, suites.reach(s.id))
		}
	}
	fmt.Fprintf(out, "%s: %d places, %d tried: %d noticed, %d survived, %d equivalent\n",
		pkg, len(sites), len(tried), counts.noticed, counts.survived, counts.equivalent)
	return counts.survived, nil
}

// draw selects count sites at random, in the order of the source.
func draw(sites []*site, o options) []*site {
	from := slices.DeleteFunc(slices.Clone(sites), func(s *site) bool {
		return s.dropped || o.match != nil && !o.match.MatchString(s.String())
	})
	if o.count == 0 || o.count >= len(from) {
		return from
	}
	random := rand.New(rand.NewPCG(o.seed, 0))
	random.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	from = from[:o.count]
	slices.SortFunc(from, func(a, b *site) int { return a.id - b.id })
	return from
}

// readEquivalent reads lines of a site's key, " -- " and the reason.
func readEquivalent(path string) (map[string]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	known := map[string]string{}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, reason, is := strings.Cut(line, " -- ")
		if !is || reason == "" {
			return nil, fmt.Errorf("%s:%d: want a mutant, ' -- ' and the reason why it changes nothing", path, i+1)
		}
		known[key] = reason
	}
	return known, nil
}
