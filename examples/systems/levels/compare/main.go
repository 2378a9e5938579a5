// Command compare measures the limiter algorithms of weir, and prints a Markdown table: how exactly each algorithm
// keeps a limit, how long its bursts are, what memory a key takes and how long a decision takes. It measures exactness,
// bursts and memory in a weir of its own, whose clock only this program moves. These figures are the same on every
// machine.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
)

// defaults are the sizes of bench/algorithms.md.
var defaults = sizes{limit: 100, window: time.Minute, long: 10_000, decisions: 200_000}

func main() {
	s := defaults
	flag.IntVar(&s.limit, "limit", s.limit, "requests that each algorithm admits in a window, at least 20")
	flag.DurationVar(&s.window, "window", s.window, "the window, in whole milliseconds")
	flag.IntVar(&s.long, "long", s.long, "the limit of the key whose memory is measured beside")
	flag.IntVar(&s.decisions, "decisions", s.decisions, "decisions whose time is measured, for each algorithm")
	addr := flag.String(
		"addr", "", "host:port of a weir whose time per decision is measured, instead of the program's own")
	flag.Parse()
	if err := run(context.Background(), *addr, s); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, addr string, s sizes) error {
	if s.limit < 20 || s.long < 1 || s.decisions < 1 || s.window < 20*time.Millisecond ||
		s.window%(20*time.Millisecond) != 0 {
		return fmt.Errorf("-limit must be at least 20, -long and -decisions at least 1, -window a multiple of 20ms")
	}
	w, err := startWeir()
	if err != nil {
		return err
	}
	defer w.stop()
	timed := w.rdb
	if addr != "" {
		timed = redis.NewClient(&redis.Options{Addr: addr})
		defer func() { _ = timed.Close() }()
	}
	figures, err := measureAll(ctx, w, timed, s)
	if err != nil {
		return err
	}
	return write(os.Stdout, figures, s)
}
