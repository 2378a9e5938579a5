package chaos

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long a node may take to hand over, drain and save: more than
// the server's own bound of 10 s for clients to take their replies.
const stopTimeout = 20 * time.Second

// dumpTimeout is for writing some hundred goroutines to a file.
const dumpTimeout = 5 * time.Second

// ErrSlowStop: a node did not end after SIGTERM and was killed.
var ErrSlowStop = errors.New("did not end in time after SIGTERM")

// Process is one run of a server program, from its start to its end. Its methods
// act on this process and no other, by its id. Safe for use by several goroutines.
type Process struct {
	cmd    *exec.Cmd
	log    *os.File
	exited chan struct{} // closed when it has ended

	mu      sync.Mutex
	intends bool // its end is wanted
}

// startProcess runs a program with its output appended to logFile. onExit is
// called once, when it ends without having been asked to.
func startProcess(binary, logFile string, args []string, onExit func(error)) (*Process, error) {
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	// A harness that is killed takes its servers with it.
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

// note writes a line of the harness between those of the server.
func (p *Process) note(format string, args ...any) {
	fmt.Fprintf(p.log, "%s chaos: %s\n", time.Now().Format(time.RFC3339Nano), fmt.Sprintf(format, args...))
}

// Kill ends the process at once, as kill -9 does, and returns when it is gone.
func (p *Process) Kill() {
	p.signal(syscall.SIGKILL, true)
	<-p.exited
}

// Stop asks the process to end in order. When it takes too long, it is made to
// write its goroutines to the log before it is killed.
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

// Pause and Resume stop and continue the process. It notices nothing but the time.
func (p *Process) Pause()  { p.signal(syscall.SIGSTOP, false) }
func (p *Process) Resume() { p.signal(syscall.SIGCONT, false) }

// Running says whether the process has not ended yet.
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
		_ = p.cmd.Process.Signal(s) // fails only when the process has ended meanwhile
	}
}
