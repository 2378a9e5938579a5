package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long a node may take to transfer leadership, drain and save. It is longer than the server's own
// bound of 10 s for clients to take their replies.
const stopTimeout = 20 * time.Second

// dumpTimeout bounds the writing of some hundred goroutine stacks to a file.
const dumpTimeout = 5 * time.Second

// ErrSlowStop reports that a node did not end after SIGTERM and was killed.
var ErrSlowStop = errors.New("did not end in time after SIGTERM")

// modulePath is the package of the server's program. It is absolute, so that the harness can build from any directory.
const modulePath = "github.com/weir-project/weir/cmd/weir"

// Build compiles the server, with the known mistakes that tests switch on, into dir and returns
// the program's path.
func Build(dir string) (string, error) {
	binary := filepath.Join(dir, "weir")
	if out, err := exec.Command("go", "build", "-tags", "weirfaults", "-o", binary,
		modulePath).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return binary, nil
}

// Process is one run of a server program, from its start to its end. Its methods act only on this process, by its id.
// It is safe for use by several goroutines.
type Process struct {
	cmd    *exec.Cmd
	log    *os.File
	exited chan struct{} // closed when it has ended

	mu      sync.Mutex
	intends bool // its end was requested
}

// startProcess runs a program with its output appended to logFile. It calls onExit once if the program ends without a
// request to end.
func startProcess(binary, logFile string, args []string, onExit func(error)) (*Process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	// The kernel kills the servers when the harness is killed.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	fmt.Fprintf(log, "chaos: start %v\n", args)
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	p := &Process{cmd: cmd, log: log, exited: make(chan struct{})}
	go p.wait(onExit)
	return p, nil
}

func (p *Process) wait(onExit func(error)) {
	err := p.cmd.Wait()
	p.note("ended: %v", err)
	p.log.Close()
	p.mu.Lock()
	wanted := p.intends
	p.mu.Unlock()
	close(p.exited)
	if !wanted {
		onExit(err)
	}
}

// note writes a line of the harness to the log of the server.
func (p *Process) note(format string, args ...any) {
	fmt.Fprintf(p.log, "%s chaos: %s\n", time.Now().Format(time.RFC3339Nano), fmt.Sprintf(format, args...))
}

// Kill ends the process at once, as kill -9 does, and returns after its end.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL, true)
	<-p.exited
}

// Stop sends SIGTERM. If the process takes too long, Stop makes it write its goroutines to the log and then kills it.
func (p *Process) Stop() error {
	p.signal(syscall.SIGTERM, true)
	if p.endsWithin(stopTimeout) {
		return nil
	}
	p.signal(syscall.SIGQUIT, true)
	p.endsWithin(dumpTimeout)
	p.Kill()
	return ErrSlowStop
}

func (p *Process) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// Pause and Resume stop and continue the process. The process notices only the lost time.
func (p *Process) Pause()  { p.signal(syscall.SIGSTOP, false) }
func (p *Process) Resume() { p.signal(syscall.SIGCONT, false) }

// Running reports whether the process has not ended.
func (p *Process) Running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

func (p *Process) signal(s syscall.Signal, ends bool) {
	p.mu.Lock()
	p.intends = p.intends || ends
	p.mu.Unlock()
	if p.Running() {
		p.note("%v", s)
		_ = p.cmd.Process.Signal(s) // fails only if the process has ended meanwhile
	}
}
