// Package top shows the content of a server's web page in a terminal (weir top).
package top

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/healthcheck"
	"github.com/weir-project/weir/internal/cli/listener"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/cli/terminal"
	"github.com/weir-project/weir/server/httpapi"
)

const (
	// timeout bounds one request. A healthy server answers within milliseconds.
	timeout = 5 * time.Second
	// maxStatusBytes bounds the answer, because a program other than weir may listen at the address. A thousand
	// policies take some 100 KB.
	maxStatusBytes = 16 << 20
	// leastEvery is twice the maximum age of a server's status, so that two consecutive statuses differ.
	leastEvery = time.Second
	// Window is the period of the rates of policies. It is long enough for a readable, stable order, and equals the
	// half-life of the heaviest keys.
	Window = time.Minute
)

// Command shows the content of the page in a terminal. It asks the port of --http, as the page does.
type Command struct {
	HTTP         string        `name:"http" aliases:"addr" address:"" mayempty:"" default:"127.0.0.1:6381" help:"The server's --http. Without a host: this machine."`
	HTTPTLS      bool          `name:"http-tls" help:"Use HTTPS, for a server with --http-tls."`
	TLSCAFile    string        `name:"tls-ca-file" env:"-" placeholder:"FILE" help:"Certificates of the authorities that sign the server's; the machine's own unless given."`
	User         string        `env:"-" default:"default" placeholder:"NAME" help:"Log in as this user, who needs permission to read all keys."`
	PasswordFile string        `placeholder:"FILE" help:"File that contains the password."`
	Every        time.Duration `env:"-" default:"1s" help:"How often to look, a second or more."`
	Once         bool          `env:"-" help:"Measure for --every, print one report and end."`
	JSON         bool          `env:"-" name:"json" help:"Print JSON, an object a line: the content of /status.json."`
}

var errNoStatus = errors.New("no status")

// Run refreshes the view until it is interrupted or stdout is closed.
func (c *Command) Run() error {
	if c.HTTP == "" {
		return healthcheck.ErrNoHTTP
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	look, err := c.looker()
	if err != nil {
		return err
	}
	show := c.printer(os.Stdout)
	if c.live(int(os.Stdout.Fd())) {
		screen := openScreen(os.Stdout)
		defer screen.close()
		show = screen.show
	}
	if err := c.watch(ctx, look, show); ctx.Err() == nil {
		return err
	}
	return nil
}

// live reports whether the view is refreshed in place.
func (c *Command) live(stdout int) bool { return !c.Once && !c.JSON && term.IsTerminal(stdout) }

// watch passes each status to show, together with the previous status.
func (c *Command) watch(ctx context.Context, look func(context.Context) (*httpapi.Status, error),
	show func(*view) error) error {
	every := time.NewTicker(max(c.Every, leastEvery))
	defer every.Stop()
	var last *httpapi.Status
	var past window
	for {
		now, err := look(ctx)
		if err != nil {
			return err
		}
		if shown := &(view{c.HTTP, now, last, past.since(now)}); last != nil || !c.Once {
			if err := show(shown); err != nil || c.Once {
				return err
			}
		}
		last, past = now, append(past, now)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		}
	}
}

// window holds the statuses of the last Window, oldest first, with at most one for each leastEvery.
type window []*httpapi.Status

// since drops statuses that are older than Window or from before a restart of the server. It returns the oldest
// remaining status, or nil.
func (w *window) since(now *httpapi.Status) *httpapi.Status {
	old := *w
	for len(old) > 0 && (now.NowMs-old[0].NowMs > Window.Milliseconds() || old[0].UptimeS > now.UptimeS) {
		old = old[1:]
	}
	*w = old
	if len(old) == 0 {
		return nil
	}
	return old[0]
}

// printer writes statuses one after the other.
func (c *Command) printer(w io.Writer) func(*view) error {
	if c.JSON {
		return func(v *view) error {
			text, err := json.Marshal(v.now)
			if err == nil {
				_, err = w.Write(append(terminal.SilentJSON(text), '\n'))
			}
			return err
		}
	}
	return func(v *view) error {
		text := v.text()
		if !c.Once {
			text += "\n"
		}
		_, err := io.WriteString(w, text)
		return err
	}
}

// looker returns a function that requests a status.
func (c *Command) looker() (func(context.Context) (*httpapi.Status, error), error) {
	password, err := cmdline.SecretFrom("password", "", c.PasswordFile)
	if err != nil {
		return nil, err
	}
	files := &remote.Flags{TLSCAFile: c.TLSCAFile}
	if !c.HTTPTLS {
		if err := files.Refuse("--http-tls"); err != nil {
			return nil, err
		}
	}
	config, err := files.TLSConfig()
	if err != nil {
		return nil, err
	}
	direct := &http.Client{Timeout: timeout, Transport: &http.Transport{TLSClientConfig: config}} // no proxy
	url := "http://" + c.HTTP + "/status.json"
	if c.HTTPTLS {
		url = "https://" + c.HTTP + "/status.json"
	}
	return func(ctx context.Context) (*httpapi.Status, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return nil, err
		}
		if listener.IsLoopback(c.HTTP) || c.HTTP[0] == ':' {
			request.Host = "localhost" // protected mode answers only to local names of this machine
		}
		if password != "" {
			request.SetBasicAuth(c.User, password)
		}
		reply, err := direct.Do(request)
		if err != nil {
			return nil, fmt.Errorf("--http %s: %w", c.HTTP, err)
		}
		defer reply.Body.Close()
		return readStatusJSON(reply)
	}, nil
}

func readStatusJSON(reply *http.Response) (*httpapi.Status, error) {
	body, err := io.ReadAll(io.LimitReader(reply.Body, maxStatusBytes))
	if err != nil {
		return nil, err
	}
	if reply.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: the server answers %s: %s", errNoStatus, reply.Status,
			terminal.PlainText(string(body[:min(len(body), healthcheck.MaxBytes)])))
	}
	var now httpapi.Status
	err = json.Unmarshal(body, &now)
	if bounds := len(now.Latency.BoundsS); err != nil || len(now.Latency.Counts) != bounds+1 || bounds == 0 {
		return nil, fmt.Errorf("%w: the server there is not weir, or another version of weir: %w", errNoStatus,
			cmp.Or(err, errNoStatus))
	}
	return &now, nil
}
