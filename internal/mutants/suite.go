package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// longestTest bounds a test of the unchanged source. A test that takes longer is not used for mutants.
	longestTest = 3 * time.Minute
	// patience is the factor by which tests may take longer with a mutant, in addition to graceTime. A mutant that
	// makes tests hang counts as detected.
	patience  = 3
	graceTime = 30 * time.Second
	// mostBuilds bounds how often the sites that do not compile are dropped and the rest is built again.
	mostBuilds = 20
)

// suite is the test binary of one package with all mutants in it.
type suite struct {
	dir    string // of the package with these tests
	binary string
	quiet  []string // flags that keep tests from writing files about failures
	tests  []*test
}

// test is one top-level test, and the sites that it reaches.
type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool // ids of sites
}

type suites []*suite

// buildSuites builds the tests of pkg, and those of the packages of o.with, around the
// mutants of pkg, and runs each test once without a mutant.
func buildSuites(out io.Writer, work, pkg string, o options, sites []*site) (suites, error) {
	dirs := []string{pkg}
	if o.with != "" {
		dirs = append(dirs, strings.Split(o.with, ",")...)
	}
	var all suites
	for i, dir := range dirs {
		s := &suite{dir: dir, binary: filepath.Join(work, fmt.Sprintf("tests%d", i))}
		if err := s.build(work, pkg, sites); err != nil {
			return nil, err
		}
		if err := s.survey(work); err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "%s: %d tests pass without a mutant\n", dir, len(s.tests))
		all = append(all, s)
	}
	return all, nil
}

var compileError = regexp.MustCompile(`(?m)^(?:.*/)?([^/\s]+\.go):(\d+):`)

// build compiles the tests. It drops the sites on lines that do not compile.
func (s *suite) build(work, pkg string, sites []*site) error {
	for range mostBuilds {
		kept := slices.DeleteFunc(slices.Clone(sites), func(s *site) bool { return s.dropped })
		list, err := overlay(pkg, work, kept)
		if err != nil {
			return err
		}
		compile := exec.Command("go", "test", "-c", "-pgo=off", "-gcflags=-e", "-overlay", list, "-o", s.binary, s.dir)
		said, err := compile.CombinedOutput()
		if err == nil {
			return nil
		}
		dropped := 0
		for _, m := range compileError.FindAllStringSubmatch(string(said), -1) {
			line, _ := strconv.Atoi(m[2])
			dropped += dropLine(kept, m[1], line)
		}
		if dropped == 0 {
			return fmt.Errorf("go test -c: %w: %s", err, said)
		}
	}
	return fmt.Errorf("the mutants do not compile after %d builds", mostBuilds)
}

// dropLine drops the sites that overlap with a line.
func dropLine(sites []*site, base string, line int) (dropped int) {
	for _, s := range sites {
		last := s.line + strings.Count(s.text, "\n")
		if filepath.Base(s.file) == base && s.line <= line && line <= last && !s.dropped {
			s.dropped = true
			dropped++
		}
	}
	return dropped
}

// survey runs each test alone, without a mutant, and records which sites it reaches. It omits a test that fails,
// because such a test says nothing about mutants.
func (s *suite) survey(work string) error {
	const noFile = "-rapid.nofailfile" // defined only in tests that use rapid
	if s.command(context.Background(), 0, "", "-test.list", "^$", noFile).Run() == nil {
		s.quiet = []string{noFile}
	}
	listed, err := s.command(context.Background(), 0, "", "-test.list", ".").Output()
	if err != nil {
		return err
	}
	for name := range strings.Lines(string(listed)) {
		name = strings.TrimSpace(name)
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") && !strings.HasPrefix(name, "Example") {
			continue
		}
		notes := filepath.Join(work, "reached")
		if err := os.WriteFile(notes, nil, 0o600); err != nil {
			return err
		}
		begun := time.Now()
		if failed, _ := s.run(0, notes, longestTest, name); failed != "" {
			continue
		}
		reaches, err := readNotes(notes)
		if err != nil {
			return err
		}
		s.tests = append(s.tests, &test{name, time.Since(begun), reaches})
	}
	slices.SortFunc(s.tests, func(a, b *test) int { return int(a.took - b.took) })
	return nil
}

func readNotes(path string) (map[int]bool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reached := map[int]bool{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		id, err := strconv.Atoi(lines.Text())
		if err != nil {
			return nil, err
		}
		reached[id] = true
	}
	return reached, lines.Err()
}

// notice runs the tests that reach a mutant, the shortest first, as many as fit the budget. It returns the first test
// that fails, or "".
func (all suites) notice(id int, budget time.Duration) (string, error) {
	for _, s := range all {
		names, usual := s.reaching(id, budget)
		if len(names) == 0 {
			continue
		}
		failed, err := s.run(id, "", patience*usual+graceTime, names...)
		if failed != "" || err != nil {
			return failed, err
		}
	}
	return "", nil
}

func (s *suite) reaching(id int, budget time.Duration) (names []string, usual time.Duration) {
	for _, t := range s.tests {
		if t.reaches[id] && (len(names) == 0 || usual+t.took <= budget) {
			names = append(names, t.name)
			usual += t.took
		}
	}
	return names, usual
}

// reach describes how many tests reach a site.
func (all suites) reach(id int) string {
	n := 0
	for _, s := range all {
		for _, t := range s.tests {
			if t.reaches[id] {
				n++
			}
		}
	}
	if n == 0 {
		return "no test reaches it"
	}
	return fmt.Sprintf("%d tests reach it", n)
}

var failedTest = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// run runs tests with a mutant on. It returns the first test that failed, or how the tests ended.
func (s *suite) run(id int, notes string, limit time.Duration, names ...string) (failed string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := s.command(ctx, id, notes, "-test.failfast", "-test.count=1", "-test.run", "^("+strings.Join(names, "|")+")$")
	said, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case ctx.Err() != nil:
		return "hangs", nil
	case !errors.As(err, &exit):
		return "", err
	}
	if m := failedTest.FindSubmatch(said); m != nil {
		return string(m[1]), nil
	}
	return "crashes", nil
}

// command runs the test binary in the package's directory, as go test does. WaitDelay bounds the wait for children
// that keep its output open.
func (s *suite) command(ctx context.Context, id int, notes string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, s.binary, append(args, s.quiet...)...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "MUTANT="+strconv.Itoa(id), "MUTANT_REACHED="+notes)
	cmd.WaitDelay = time.Second
	return cmd
}
