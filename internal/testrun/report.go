package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
)

// report follows the events of a run.
type report struct {
	to      io.Writer
	now     func() time.Time
	began   time.Time
	running map[string]*pkg
	done    int
	skips   []skip
	failed  []string
}

// pkg is a package whose tests run.
type pkg struct {
	since  time.Time
	test   string              // the test that began last
	output map[string][]string // of each test that has not ended
}

type skip struct{ pkg, test, reason string }

func newReport(to io.Writer, now func() time.Time) *report {
	return &report{to: to, now: now, began: now(), running: map[string]*pkg{}}
}

func (r *report) line(format string, args ...any) { fmt.Fprintf(r.to, format+"\n", args...) }

// short returns a package without the path of the module.
func short(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, "github.com/weir-project/weir"), "/")
}

func (r *report) take(e event) {
	if e.Package == "" { // of the compiler, or of go test itself
		if e.Output != "" {
			fmt.Fprint(r.to, e.Output)
		}
		return
	}
	p := r.running[e.Package]
	if p == nil {
		p = &pkg{since: r.now(), output: map[string][]string{}}
		r.running[e.Package] = p
	}
	switch e.Action {
	case "run":
		p.test = e.Test
	case "output":
		p.output[e.Test] = append(p.output[e.Test], e.Output)
	case "pass", "fail", "skip":
		r.end(e, p)
	}
}

// end handles the end of a test or of a package.
func (r *report) end(e event, p *pkg) {
	output := p.output[e.Test]
	delete(p.output, e.Test)
	switch {
	case e.Action == "fail":
		fmt.Fprint(r.to, strings.Join(output, ""))
		r.failed = append(r.failed, strings.TrimSpace(short(e.Package)+" "+e.Test))
	case e.Action == "skip" && e.Test != "":
		r.skips = append(r.skips, skip{short(e.Package), e.Test, reasonOf(output)})
	}
	if e.Test != "" {
		return
	}
	delete(r.running, e.Package)
	for _, test := range slices.Sorted(maps.Keys(p.output)) { // of tests that a panic or a time limit ended
		if e.Action == "fail" {
			fmt.Fprint(r.to, strings.Join(p.output[test], ""))
		}
	}
	if r.done++; e.Action == "skip" {
		return // no tests
	}
	r.line("%-4s %7.1fs  %s  (%v since the start)", e.Action, e.Elapsed, short(e.Package), r.elapsed())
}

func (r *report) elapsed() time.Duration { return r.now().Sub(r.began).Round(time.Second) }

// beat names the packages that run, or says that none runs yet.
func (r *report) beat() {
	if len(r.running) == 0 {
		r.line("...  %v: Go compiles; %d packages are done", r.elapsed(), r.done)
		return
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(r.running)) {
		p := r.running[name]
		age := r.now().Sub(p.since).Round(time.Second)
		names = append(names, fmt.Sprintf("%s for %v (%s)", short(name), age, p.test))
	}
	r.line("...  %v: running %s; %d packages are done", r.elapsed(), strings.Join(names, ", "), r.done)
}

// position is the file and line before the reason of a skip.
var position = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

// reasonOf returns the reason in the output of a skipped test.
func reasonOf(output []string) string {
	var words []string
	for _, line := range output {
		if line = strings.TrimRight(line, "\n"); !strings.HasPrefix(strings.TrimSpace(line), "===") &&
			!strings.HasPrefix(strings.TrimSpace(line), "--- SKIP") {
			words = append(words, strings.TrimSpace(position.ReplaceAllString(line, "")))
		}
	}
	return strings.TrimPrefix(strings.Join(words, " "), "SKIPPED: ")
}

// plain returns a line for each test that skips under the race detector: its package and its name.
func (r *report) plain() string {
	var lines strings.Builder
	for _, s := range r.skips {
		if test, _, _ := strings.Cut(s.test, "/"); strings.HasPrefix(s.reason, "the race detector") {
			fmt.Fprintf(&lines, "./%s %s\n", s.pkg, test)
		}
	}
	return lines.String()
}

// finish prints the skips and the failures. It returns the number of skips that are not on the list.
func (r *report) finish(allowed []listed) (unlisted int) {
	for _, s := range r.skips {
		if l := find(allowed, s.reason); l != nil {
			r.line("skipped %s %s: %s; runs: %s", s.pkg, s.test, s.reason, l.where)
			continue
		}
		unlisted++
		r.line("SKIPPED %s %s: %s; this reason is not on the list of skips", s.pkg, s.test, s.reason)
	}
	for _, name := range r.failed {
		r.line("FAILED %s", name)
	}
	r.line("%d packages in %v: %d failures, %d skips, %d of them not on the list", r.done, r.elapsed(), len(r.failed),
		len(r.skips), unlisted)
	return unlisted
}
