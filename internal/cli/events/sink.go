package events

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"
)

// deliverTimeout bounds one delivery. A receiver that takes longer should answer first and work later.
const deliverTimeout = 30 * time.Second

// sink delivers events, all of them or none.
type sink func(ctx context.Context, list []Event) error

// deliver delivers events, with as many tries as it takes.
func (r *reader) deliver(ctx context.Context, list []Event) error {
	what := "event " + list[0].ID
	if n := len(list); n > 1 {
		what = fmt.Sprintf("%d events from %s on", n, list[0].ID)
	}
	return r.wait.retry(ctx, func() error {
		one, cancel := context.WithTimeout(ctx, deliverTimeout)
		defer cancel()
		if err := r.sink(one, list); err != nil {
			return fmt.Errorf("not delivered: %s: %w", what, err)
		}
		return nil
	})
}

// lines returns each event as a line of JSON.
func lines(list []Event) []byte {
	var b bytes.Buffer
	to := json.NewEncoder(&b)
	for i := range list {
		_ = to.Encode(&list[i]) // numbers and text can be encoded
	}
	return b.Bytes()
}

// webhook posts events to a URL: an array of them, or one alone with the header Weir-Event-Id, which is the same for
// each delivery of the event.
func webhook(url string, array bool) sink {
	return func(ctx context.Context, list []Event) error {
		var what any = list
		if !array {
			what = list[0]
		}
		body, err := json.Marshal(what)
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		if !array {
			req.Header.Set("Weir-Event-Id", list[0].ID)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, _ = io.CopyN(io.Discard, res.Body, 64<<10) // so that the connection can be used again
		if res.StatusCode/100 != 2 {
			return fmt.Errorf("the receiver answered %s", res.Status)
		}
		return nil
	}
}

// program runs a shell command with events as its standard input. The command for a single event has its id in a
// variable.
func program(command string, several bool) sink {
	return func(ctx context.Context, list []Event) error {
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(lines(list)), os.Stdout, os.Stderr
		if !several {
			cmd.Env = append(os.Environ(), "EVENT_ID="+list[0].ID)
		}
		return cmd.Run()
	}
}

// pause is the pause before another try.
type pause struct {
	said io.Writer
	next time.Duration
}

func (p *pause) reset() { p.next = 0 }

// retry calls try until it succeeds. It returns an error only when ctx is over.
func (p *pause) retry(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			p.reset()
			return nil
		}
		if ctx.Err() != nil { // a signal has ended the try
			return ctx.Err()
		}
		p.after(ctx, err)
	}
}

// after says what went wrong, and waits.
func (p *pause) after(ctx context.Context, err error) {
	p.next = min(max(2*p.next, firstRetry), lastRetry)
	fmt.Fprintf(p.said, "%v; trying again in %v\n", err, p.next)
	timer := time.NewTimer(p.next)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
