// Command testrun runs "go test" on packages, and says what it does: each package with its time when it ends, and once
// a minute what runs. At the end it names the skipped tests with their reasons. With -strict, a skip whose reason is
// not on the list fails the run. With -plain, it writes the tests that skip under the race detector to a file.
//
//	go run ./internal/testrun [-strict] [-list scripts/skips.txt] [-plain FILE] -- <arguments of go test>
//
// As with go test, the first argument may be -C and a directory, which is that of another module.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// heartbeat is the longest time without a line.
const heartbeat = time.Minute

func main() {
	list := flag.String("list", "scripts/skips.txt", "the skips that are allowed, with the place where each test runs")
	strict := flag.Bool("strict", false, "fail if a test skips for a reason that is not on the list")
	plain := flag.String("plain", "", "file for the tests that skip under the race detector, each as package and test")
	flag.Parse()
	allowed, err := readList(*list)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	r := newReport(os.Stdout, time.Now)
	failed := r.run(ctx, flag.Args())
	stop()
	if *plain != "" {
		if err := os.WriteFile(*plain, []byte(r.plain()), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, "testrun:", err)
			os.Exit(2)
		}
	}
	if unlisted := r.finish(allowed); failed || *strict && unlisted > 0 {
		os.Exit(1)
	}
}

// run runs go test, and reports whether it failed.
func (r *report) run(ctx context.Context, args []string) (failed bool) {
	goTool := os.Getenv("GO")
	if goTool == "" {
		goTool = "go"
	}
	dir := ""
	if len(args) > 1 && args[0] == "-C" {
		dir, args = args[1], args[2:]
	}
	cmd := exec.CommandContext(ctx, goTool, append([]string{"test", "-json"}, args...)...)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		r.line("testrun: %v", err)
		return true
	}
	events := make(chan event)
	go read(out, events)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				return cmd.Wait() != nil
			}
			r.take(e)
		case <-beat.C:
			r.beat()
		}
	}
}

// event is an event of "go test -json".
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

func read(from io.Reader, to chan<- event) {
	defer close(to)
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var e event
		if json.Unmarshal(line, &e) != nil {
			e = event{Action: "output", Output: string(line)}
		}
		to <- e
	}
}

// listed is a skip that is allowed: the beginning of its reason, and where the test runs instead.
type listed struct{ reason, where string }

func readList(path string) (all []listed, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		reason, where, ok := strings.Cut(line, " => ")
		if !ok || reason == "" || where == "" {
			return nil, fmt.Errorf("%s: a line must be like 'reason => where the test runs', not %q", path, line)
		}
		all = append(all, listed{reason, where})
	}
	return all, nil
}

// find returns the entry of a reason, or nil.
func find(all []listed, reason string) *listed {
	at := slices.IndexFunc(all, func(l listed) bool { return strings.Contains(reason, l.reason) })
	if at < 0 {
		return nil
	}
	return &all[at]
}
