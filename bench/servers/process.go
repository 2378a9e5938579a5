package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weir-project/weir/internal/freeport"
)

const (
	// PortPlaceholder stands for the port in a server's arguments.
	PortPlaceholder = "{port}"
	// ReadyTimeout is far longer than an empty server takes to start on a busy machine.
	ReadyTimeout = 30 * time.Second
	readyPoll    = 20 * time.Millisecond
	// StopTimeout is how long a server may take to save and end before it is killed. It is longer than weir drains its
	// clients.
	StopTimeout = 20 * time.Second
	// logTail is how many bytes at the end of a failed server's log an error quotes.
	logTail = 1000
)

// Process is a Server of one process on a free loopback port.
type Process struct {
	Binary  string
	Args    []string // PortPlaceholder stands for the port
	LogFile string   // receives its output
	Unset   string   // prefix of variables that are removed from its environment; empty for none
	Bare    bool     // it answers PING but not INFO; its command line gives the version

	fixed  string // its address; empty for a free one
	addr   string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process has ended
}

var _ Server = (*Process)(nil)

func (p *Process) Addr(context.Context) (string, error) { return p.addr, nil }
func (p *Process) Nodes() []string                      { return []string{p.addr} }
func (p *Process) PIDs() []int                          { return []int{p.cmd.Process.Pid} }
func (p *Process) CommandLines() [][]string             { return [][]string{p.cmd.Args} }

// Start runs the program, and returns when it answers. After a failure it has stopped the program.
func (p *Process) Start(ctx context.Context) error {
	if p.running() {
		return nil
	}
	if err := p.launch(); err != nil {
		return err
	}
	if err := p.awaitReady(ctx); err != nil {
		return errors.Join(fmt.Errorf("%s %w: %w\n%s", p.Binary, ErrNotReady, err, tail(p.LogFile)), p.Stop())
	}
	return nil
}

func (p *Process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// launch does not tie the process to a context, because a context would kill it. Stop lets it end in order.
func (p *Process) launch() error {
	addr, err := p.pickAddr()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	log, err := os.Create(p.LogFile)
	if err != nil {
		return err
	}
	defer log.Close() // the process has its own descriptor
	args := slices.Clone(p.Args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], PortPlaceholder, port)
	}
	cmd := exec.Command(p.Binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return p.Unset != "" && strings.HasPrefix(v, p.Unset)
	})
	if err := cmd.Start(); err != nil {
		return err
	}
	p.addr, p.cmd, p.exited = addr, cmd, make(chan struct{})
	go func() {
		_ = cmd.Wait() // the log says how it ended
		close(p.exited)
	}()
	return nil
}

// Version implements Server.
func (p *Process) Version(ctx context.Context) (string, error) {
	if !p.Bare {
		return VersionAt(p.addr)
	}
	out, err := exec.CommandContext(ctx, p.Binary, "--version").Output()
	return strings.TrimSpace(string(out)), err
}

// awaitReady returns when this process answers, and not another that took the port first. For a bare process it cannot
// tell the difference.
func (p *Process) awaitReady(ctx context.Context) error {
	return poll(ctx, ReadyTimeout, func() (bool, error) {
		if !p.running() {
			return false, errors.New("it ended")
		}
		if p.Bare {
			return pinged(p.addr) == nil, nil
		}
		info, err := serverInfo(p.addr, "server")
		return err == nil && info["process_id"] == fmt.Sprint(p.cmd.Process.Pid), nil
	})
}

// poll checks a condition until it is true or fails, for as long as patience lasts.
func poll(ctx context.Context, patience time.Duration, done func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	next := time.NewTicker(readyPoll)
	defer next.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-next.C:
		}
	}
}

// Stop asks the process to end, waits, and kills it if it takes too long. It does nothing for a process that was never
// started or has ended.
func (p *Process) Stop() error {
	if p.cmd == nil {
		return nil
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.exited:
		return nil
	case <-time.After(StopTimeout):
	}
	err := p.cmd.Process.Kill()
	<-p.exited
	return errors.Join(fmt.Errorf("%s did not end within %v and was killed", p.Binary, StopTimeout), err)
}

func (p *Process) pickAddr() (string, error) {
	if p.fixed != "" {
		return p.fixed, nil
	}
	addrs, err := freeport.Take(1)
	if err != nil {
		return "", err
	}
	return addrs[0], nil
}

// tail returns the end of a log, or "" if the log cannot be read.
func tail(file string) string {
	b, _ := os.ReadFile(file)
	return string(b[max(0, len(b)-logTail):])
}
