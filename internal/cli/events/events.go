// Package events reads the log of events of a running server, prints its events and delivers them: to a URL, or to the
// standard input of a program.
//
// Events are delivered in their order and at least once. The next delivery waits until its predecessor has succeeded. A
// file has the place of the last delivered event, so a later run goes on behind it. A crash between the delivery and
// the file delivers the same events again, with the same ids.
package events

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/gomodule/redigo/redis"

	"github.com/weir-project/weir/internal/cli/remote"
)

const (
	// asked is how many events one question asks for, or --batch if that is more.
	asked = 100
	// maxBatch bounds --batch.
	maxBatch = 1000
	// block is how long the server waits for an event. It is shorter than the time after which the connection gives up.
	block = "20s"
	// firstRetry and lastRetry bound the pause before another try. Each pause is twice the one before.
	firstRetry, lastRetry = 500 * time.Millisecond, 30 * time.Second
	// temporary is the name of a file that replace writes.
	temporary = ".cursor-*"
)

// Command prints or delivers events.
type Command struct {
	Addr         []string `address:"" default:"127.0.0.1:6380" help:"A server, or nodes of one cluster: when one fails, the next is asked."`
	PasswordFile string   `placeholder:"FILE" help:"File that contains its password."`
	remote.Flags

	Follow  bool   `env:"-" help:"Wait for further events, until a signal. Unless given, stop at the newest."`
	From    string `env:"-" placeholder:"FILE" help:"File with the place of the last delivered event. Begins behind it, or without the file at the oldest event. The directory must exist."`
	After   string `env:"-" placeholder:"CURSOR" help:"Begin behind this event, whatever --from says: its id or cursor; 0: at the first event ever."`
	Group   int    `env:"-" default:"0" help:"The Raft group to read, from 0. Each needs a program and a file of its own."`
	Batch   int    `env:"-" default:"1" least:"1" help:"Deliver so many events at once, at most 1000: from 2 on as an array, or a line each."`
	Webhook string `env:"-" placeholder:"URL" help:"POST each event as JSON. Any answer but 2xx is tried again."`
	Exec    string `env:"-" placeholder:"COMMAND" help:"Run a shell command, with the JSON on standard input. Any exit code but 0 is tried again."`
}

// Event is one event, as RL.EVENTS answers it and as it is delivered.
type Event struct {
	ID      string `redis:"-" json:"event_id"` // group, time and cursor: the same for each delivery of the event, and of no other
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
	r := reader{Command: c, sink: sink, wait: pause{said: said}}
	if c.From != "" {
		lock, err := lock(c.From)
		if err != nil {
			return fmt.Errorf("--from: %w", err)
		}
		defer lock.Close()
	}
	if r.place, err = c.start(); err != nil {
		return err
	}
	for ctx.Err() == nil {
		server := remote.Server{Addr: c.Addr[r.server], PasswordFile: c.PasswordFile, Flags: c.Flags}
		err := server.With(func(conn redis.Conn) error { return r.read(ctx, conn) })
		switch {
		case err == nil || ctx.Err() != nil:
			return nil
		case isRefusal(err):
			return c.advise(err)
		}
		if len(c.Addr) > 1 {
			err = fmt.Errorf("%s: %w", server.Addr, err)
		}
		r.server = (r.server + 1) % len(c.Addr)
		switch r.failed++; {
		case r.failed%len(c.Addr) != 0:
			fmt.Fprintf(said, "%v; asking %s\n", err, c.Addr[r.server])
		case !c.Follow:
			return err
		default:
			r.wait.after(ctx, err)
		}
	}
	return nil
}

// lock refuses a second program that uses the file. The lock ends with the process.
func lock(path string) (io.Closer, error) {
	lock, err := vfs.Default.Lock(path + ".lock")
	if err == nil || errors.As(err, new(*fs.PathError)) {
		return lock, err
	}
	return nil, fmt.Errorf("another weir events uses %s, and has locked %[1]s.lock (%w): stop it, or give each "+
		"program a file of its own", path, err)
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

// advise says with the flags of this command how a reader that has missed events goes on.
func (c *Command) advise(err error) error {
	var said redis.Error
	if !errors.As(err, &said) || !strings.HasPrefix(string(said), "EVENTSGONE ") {
		return err
	}
	text := strings.Replace(string(said), "go on with AFTER ", "go on with --after ", 1)
	if c.From != "" {
		text += ". Give --after once: it also writes " + c.From
	}
	return redis.Error(text)
}

// aPlace is the place of a reader: a cursor, or the id of an event.
var aPlace = regexp.MustCompile(`^(\d{1,16}-)?\d{1,16}$`)

// start returns the place at which to begin, or "" for the oldest event.
func (c *Command) start() (string, error) {
	if c.After != "" || c.From == "" {
		return c.After, nil
	}
	text, err := os.ReadFile(c.From)
	switch place := strings.TrimSpace(string(text)); {
	case errors.Is(err, os.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("--from: %w", err)
	case !aPlace.MatchString(place):
		return "", fmt.Errorf("--from: %s must have the place of an event, like 1767225600000-42, and not %.40q; give "+
			"--after to begin behind another event", c.From, place)
	default:
		return place, nil
	}
}

// reader reads and delivers events.
type reader struct {
	*Command
	sink   sink
	wait   pause
	server int // index of the address that is asked
	failed int // servers that have failed since one has answered
	// place is the event behind which to go on: its id, or a cursor. It is "" until the oldest event is known.
	place string
	kept  string // the place in the file
	// answered is set by the first answer. The first question does not wait, so the file soon has a place.
	answered bool
}

// read reads and delivers events over one connection. It returns only errors of the connection and of the server.
func (r *reader) read(ctx context.Context, conn redis.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	for {
		list, err := r.ask(conn)
		if err != nil {
			return err
		}
		r.wait.reset()
		r.failed, r.answered = 0, true
		begins := r.place == ""
		if begins {
			r.begin(list)
		}
		if err := r.keep(ctx); err != nil {
			return err
		}
		for part := range slices.Chunk(list, r.Batch) {
			if err := r.deliver(ctx, part); err != nil {
				return err
			}
			last := &part[len(part)-1]
			r.place = fmt.Sprintf("%d-%d", last.TimeMs, last.Cursor)
			if err := r.keep(ctx); err != nil {
				return err
			}
		}
		if len(list) == 0 && !r.Follow && !begins {
			return nil
		}
	}
}

// begin sets the place before the oldest event, of which list begins with if there is one. From then on the log cannot
// drop an event unnoticed before it is read.
func (r *reader) begin(list []Event) {
	if r.place = "0"; len(list) == 0 {
		return
	}
	if before := list[0].Cursor - 1; before > 0 {
		r.place = fmt.Sprint(before)
		fmt.Fprintf(r.wait.said, "the log has dropped its first %d events; beginning at event %s\n", before, list[0].ID)
	}
}

// ask asks for the next events.
func (r *reader) ask(conn redis.Conn) ([]Event, error) {
	args := redis.Args{}.Add("COUNT", max(asked, r.Batch), "GROUP", r.Group)
	if r.place != "" {
		args = args.Add("AFTER", r.place)
	}
	if r.answered && r.Follow {
		args = args.Add("BLOCK", block)
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
		list[i].ID = fmt.Sprintf("%d-%d-%d", r.Group, list[i].TimeMs, list[i].Cursor)
	}
	return list, nil
}

// keep writes the place into the file, with as many tries as it takes.
func (r *reader) keep(ctx context.Context) error {
	if r.From == "" || r.place == r.kept {
		return nil
	}
	return r.wait.retry(ctx, func() error {
		if err := replace(r.From, r.place); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
		r.kept = r.place
		return nil
	})
}

// replace replaces the file by a line of text. A crash leaves the old file or the new one.
func replace(path, text string) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), temporary)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
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
	case c.Batch < 1 || c.Batch > maxBatch:
		return nil, fmt.Errorf("--batch must be a number from 1 to %d, not %d", maxBatch, c.Batch)
	case c.Webhook != "" && c.Exec != "":
		return nil, errors.New("give either --webhook or --exec, not both")
	case c.Webhook != "":
		if u, err := url.Parse(c.Webhook); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("--webhook must be a URL like https://example.org/weir, not %.80q", c.Webhook)
		}
		return webhook(c.Webhook, c.Batch > 1), nil
	case c.Exec != "":
		return program(c.Exec, c.Batch > 1), nil
	}
	return func(_ context.Context, list []Event) error {
		_, err := out.Write(lines(list))
		return err
	}, nil
}
