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

// sink delivers an event. body is the event in JSON.
type sink func(ctx context.Context, e *Event, body []byte) error

// deliver delivers an event, with as many tries as it takes.
func deliver(ctx context.Context, e *Event, to sink, wait *pause) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	for {
		one, cancel := context.WithTimeout(ctx, deliverTimeout)
		err := to(one, e, body)
		cancel()
		if err == nil {
			wait.reset()
			return nil
		}
		if ctx.Err() != nil { // the signal has ended the delivery
			return ctx.Err()
		}
		wait.after(ctx, fmt.Errorf("event %s was not delivered: %w", e.ID, err))
	}
}

// webhook posts events to a URL. The header Weir-Event-Id is the same for each delivery of an event.
func webhook(url string) sink {
	return func(ctx context.Context, e *Event, body []byte) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Weir-Event-Id", e.ID)
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

// program runs a shell command with an event as its standard input.
func program(command string) sink {
	return func(ctx context.Context, e *Event, body []byte) error {
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(body, '\n')), os.Stdout, os.Stderr
		cmd.Env = append(os.Environ(), "EVENT_ID="+e.ID)
		return cmd.Run()
	}
}

// pause is the pause before another try.
type pause struct {
	said io.Writer
	next time.Duration
}

func (p *pause) reset() { p.next = 0 }

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
