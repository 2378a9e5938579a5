// Package migrate tells what a move from Redis to weir would break (weir migrate).
package migrate

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/weir-project/weir/internal/cli/cmdline"
	"github.com/weir-project/weir/internal/cli/remote"
	"github.com/weir-project/weir/internal/cli/terminal"
)

const (
	// maxLine bounds a line of MONITOR. A script of 8 KiB and the longest values of weir fit, with each byte escaped.
	maxLine = 1 << 20
	// maxWatch bounds --for, because MONITOR slows Redis down.
	maxWatch = time.Hour
	// answerTimeout bounds the connect and the wait for an answer to AUTH and MONITOR.
	answerTimeout = 10 * time.Second
	// shownAnswer bounds an unexpected answer in an error.
	shownAnswer = 512
)

// Command helps to move from Redis to weir.
type Command struct {
	Watch watchCmd `cmd:"" help:"Read the MONITOR of a running Redis, which slows it down, and list what weir would refuse. Exit code 1 if there is anything."`
}

type watchCmd struct {
	Addr         string        `env:"-" address:"" default:"127.0.0.1:6379" help:"The Redis."`
	PasswordFile string        `env:"-" placeholder:"FILE" help:"File that contains its password."`
	For          time.Duration `env:"-" default:"30s" help:"How long, at most an hour."`
	JSON         bool          `env:"-" name:"json" help:"Print JSON."`
	remote.Flags
}

var (
	errRefused  = errors.New("the server refuses")
	errDuration = fmt.Errorf("--for must be above 0 and at most %v", maxWatch)
)

// Run watches until the time is up or it is interrupted, and prints what it has seen.
func (c *watchCmd) Run() error {
	if c.For <= 0 || c.For > maxWatch {
		return errDuration
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	conn, in, err := c.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	fmt.Fprintf(os.Stderr, "watching %s for %v\n", c.Addr, c.For)
	t, err := newTrial()
	if err != nil {
		return err
	}
	defer t.close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })()
	if err := conn.SetReadDeadline(time.Now().Add(c.For)); err != nil {
		return err
	}
	if err := t.follow(in); err != nil {
		return fmt.Errorf("%s stopped to tell its commands: %w", c.Addr, err)
	}
	r := t.report()
	if err := c.write(os.Stdout, r); err != nil {
		return err
	}
	if r.Refused > 0 {
		return &cmdline.Outcome{Text: "weir would refuse some of it", Code: 1}
	}
	return nil
}

// connect logs in and sends MONITOR. The reader is at the first command.
func (c *watchCmd) connect() (net.Conn, *bufio.Reader, error) {
	password, err := cmdline.SecretFrom("password", "", c.PasswordFile)
	if err != nil {
		return nil, nil, err
	}
	dialer := &net.Dialer{Timeout: answerTimeout}
	var conn net.Conn
	if c.TLS {
		var config *tls.Config
		if config, err = c.TLSConfig(); err == nil {
			conn, err = tls.DialWithDialer(dialer, "tcp", c.Addr, config)
		}
	} else if err = c.Refuse("--tls"); err == nil {
		conn, err = dialer.Dial("tcp", c.Addr)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot reach a server at %s (--addr): %w", c.Addr, err)
	}
	in := bufio.NewReaderSize(conn, maxLine)
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	switch {
	case password != "" && c.User != "":
		err = ask(conn, in, "AUTH", c.User, password)
	case password != "":
		err = ask(conn, in, "AUTH", password)
	}
	if err == nil {
		err = ask(conn, in, "MONITOR")
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return conn, in, nil
}

// ask sends a command whose answer is OK.
func ask(w io.Writer, in *bufio.Reader, args ...string) error {
	text := "*" + strconv.Itoa(len(args)) + "\r\n"
	for _, a := range args {
		text += "$" + strconv.Itoa(len(a)) + "\r\n" + a + "\r\n"
	}
	if _, err := io.WriteString(w, text); err != nil {
		return err
	}
	line, err := in.ReadSlice('\n')
	if err == nil && string(line) != "+OK\r\n" {
		said := strings.TrimSpace(string(line[:min(len(line), shownAnswer)]))
		err = fmt.Errorf("%w %s: %s", errRefused, args[0], terminal.PlainText(said))
	}
	return err
}

// follow tries the commands that MONITOR shows until the deadline of the connection.
func (t *trial) follow(in *bufio.Reader) error {
	for {
		line, err := in.ReadSlice('\n')
		tooLong := false
		for errors.Is(err, bufio.ErrBufferFull) {
			tooLong = true
			_, err = in.ReadSlice('\n')
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
		if e, ok := parseEntry(bytes.TrimRight(line, "\r\n")); ok && !tooLong {
			t.send(e)
		} else {
			t.unread++
		}
	}
}

// write prints a report.
func (c *watchCmd) write(w io.Writer, r *report) error {
	if c.JSON {
		return terminal.WriteJSON(w, r)
	}
	fmt.Fprintf(w, "%d commands of %d connections; weir would refuse %d\n", r.Seen, r.Clients, r.Refused)
	if r.Unread > 0 {
		fmt.Fprintf(w, "%d more could not be read: they are longer than %d bytes, or not in the form of MONITOR\n",
			r.Unread, maxLine)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(r.Requests) > 0 {
		fmt.Fprintln(table, "\nTIMES\tREFUSED\tKIND\tCLIENT\tWHAT TO DO")
	}
	for i := range r.Requests {
		u := &r.Requests[i]
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\n", u.Count, terminal.PlainText(strings.TrimSpace(u.Command+" "+u.SHA1)),
			u.Kind, terminal.PlainText(u.Addr+" "+u.Client), terminal.PlainText(u.Advice))
	}
	if len(r.Scripts) > 0 {
		fmt.Fprintln(table, "\nTIMES\tRECOGNISED SCRIPT\tNAME")
	}
	for _, s := range r.Scripts {
		fmt.Fprintf(table, "%d\t%s\t%s\n", s.Count, s.SHA1, s.Name)
	}
	return table.Flush()
}
