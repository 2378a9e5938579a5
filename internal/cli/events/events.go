// Package events reads the log of events of a running server, prints its events and delivers them: to a URL, or to the
// standard input of a program.
//
// Events are delivered in their order and at least once. The next event waits until its predecessor was delivered. The
// cursor of the last delivered event is in a file, so a later run goes on behind it. A crash between the delivery and
// the file delivers one event again, with the same id.
package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/remote"
)

const (
	// batch is how many events one question asks for.
	batch = 100
	// block is how long the server waits for an event. It is shorter than the time after which the connection gives up.
	block = "20s"
	// firstRetry and lastRetry bound the pause before another try. Each pause is twice the one before.
	firstRetry, lastRetry = 500 * time.Millisecond, 30 * time.Second
	// temporary is the name of a file that keep writes.
	temporary = ".cursor-*"
)

// Command prints or delivers events.
type Command struct {
	remote.Server `embed:""`
	Follow        bool   `env:"-" help:"Wait for further events, until a signal ends it. Unless given, stop at the newest event."`
	From          string `env:"-" placeholder:"FILE" help:"File with the cursor of the last delivered event. Begins behind it, and writes it after each event. A file that is not there begins at the oldest event."`
	After         string `env:"-" placeholder:"CURSOR" help:"Begin behind this event, whatever --from says; 0: at the first event ever."`
	Group         int    `env:"-" default:"0" help:"The Raft group whose events to read, from 0. Each group has its own: run one program, with a file of its own, for each."`
	Webhook       string `env:"-" placeholder:"URL" help:"POST each event as JSON. Any answer but 2xx is tried again."`
	Exec          string `env:"-" placeholder:"COMMAND" help:"Run a shell command for each event, with the event as JSON on its standard input. Any exit code but 0 is tried again."`
}

// Event is one event, as RL.EVENTS answers it and as it is delivered.
type Event struct {
	ID      string `redis:"-" json:"event_id"` // the group and the cursor: the same for each delivery of the event
	Cursor  int64  `redis:"cursor" json:"cursor"`
	TimeMs  int64  `redis:"time_ms" json:"time_ms"`
	Kind    string `redis:"kind" json:"kind"`
	Policy  string `redis:"policy" json:"policy"`
	Key     string `redis:"key" json:"key"`
	Request string `redis:"id" json:"id"`
	Share   int64  `redis:"share" json:"share"`
	Amount  int64  `redis:"amount" json:"amount"`
	Used    int64  `redis:"used" json:"used"`
	Limit   int64  `redis:"limit" json:"limit"`
}

// Run reads events until there is no newer one, or with --follow until a signal.
func (c *Command) Run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return c.run(ctx, os.Stdout, os.Stderr)
}

func (c *Command) run(ctx context.Context, out, said io.Writer) error {
	sink, err := c.sink(out)
	if err != nil {
		return err
	}
	after, err := c.start()
	if err != nil {
		return err
	}
	wait := pause{said: said}
	for ctx.Err() == nil {
		err := c.With(func(conn redis.Conn) error { return c.read(ctx, conn, &after, sink, &wait) })
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case !c.Follow || isRefusal(err):
			return err
		}
		wait.after(ctx, err)
	}
	return nil
}

// isRefusal reports whether a server has answered an error that another try does not change.
func isRefusal(err error) bool {
	var said redis.Error
	if !errors.As(err, &said) {
		return false
	}
	word, _, _ := strings.Cut(string(said), " ")
	switch word {
	case "TRYAGAIN", "CLUSTERDOWN", "LOADING", "OVERLOADED", "UNKNOWN", "MOVED":
		return false
	}
	return true
}

// start returns the cursor behind which to begin, or "" for the oldest event.
func (c *Command) start() (string, error) {
	if err := c.mayKeep(); err != nil {
		return "", fmt.Errorf("--from: %w", err)
	}
	if c.After != "" || c.From == "" {
		return c.After, nil
	}
	text, err := os.ReadFile(c.From)
	switch cursor := strings.TrimSpace(string(text)); {
	case errors.Is(err, os.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("--from: %w", err)
	default:
		if _, err := strconv.ParseUint(cursor, 10, 53); err != nil {
			return "", fmt.Errorf("--from: %s must have the cursor of an event, like 42, and not %.20q; give "+
				"--after to "+
				"begin behind another event", c.From, cursor)
		}
		return cursor, nil
	}
}

// read reads and delivers events over one connection.
func (c *Command) read(ctx context.Context, conn redis.Conn, after *string, sink sink, wait *pause) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	for {
		list, err := c.ask(conn, *after)
		if err != nil {
			return err
		}
		wait.reset()
		for i := range list {
			if err := deliver(ctx, &list[i], sink, wait); err != nil {
				return err
			}
			if *after = strconv.FormatInt(list[i].Cursor, 10); c.From != "" {
				if err := keep(c.From, *after); err != nil {
					return fmt.Errorf("--from: %w", err)
				}
			}
		}
		if len(list) == 0 && !c.Follow {
			return nil
		}
	}
}

// ask asks for the next events.
func (c *Command) ask(conn redis.Conn, after string) ([]Event, error) {
	args := redis.Args{}.Add("COUNT", batch, "GROUP", c.Group)
	if c.Follow {
		args = args.Add("BLOCK", block)
	}
	if after != "" {
		args = args.Add("AFTER", after)
	}
	reply, err := redis.Values(conn.Do("RL.EVENTS", args...))
	if err != nil {
		return nil, err
	}
	list := make([]Event, len(reply))
	for i := range reply {
		fields, err := redis.Values(reply[i], nil)
		if err == nil {
			err = redis.ScanStruct(fields, &list[i])
		}
		if err != nil {
			return nil, fmt.Errorf("the server answered no event: %w", err)
		}
		list[i].ID = fmt.Sprintf("%d-%d", c.Group, list[i].Cursor)
	}
	return list, nil
}

// mayKeep returns an error unless keep can write the file. It finds that out before an event is delivered.
func (c *Command) mayKeep() error {
	if c.From == "" {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(c.From), temporary)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// keep replaces the file by the cursor. A crash leaves the old file or the new one.
func keep(path, cursor string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return err
	}
	_, err = f.WriteString(cursor + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func (c *Command) sink(out io.Writer) (sink, error) {
	switch {
	case c.Webhook != "" && c.Exec != "":
		return nil, errors.New("give either --webhook or --exec, not both")
	case c.Webhook != "":
		if u, err := url.Parse(c.Webhook); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("--webhook must be a URL like https://example.org/weir, not %.80q", c.Webhook)
		}
		return webhook(c.Webhook), nil
	case c.Exec != "":
		return program(c.Exec), nil
	}
	lines := json.NewEncoder(out)
	return func(_ context.Context, e *Event, _ []byte) error { return lines.Encode(e) }, nil
}
