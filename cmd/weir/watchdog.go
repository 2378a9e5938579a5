package main

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/weir-project/weir/engine"
)

// nowAlive keeps systemd from restarting the server, see sd_notify(3).
const nowAlive = "WATCHDOG=1"

const (
	// watchdogParts is how many times a server is asked in the time that systemd waits:
	// one answer may be lost.
	watchdogParts = 3
	// watchdogLeast is the shortest wait that leaves time to ask.
	watchdogLeast = 300 * time.Millisecond
)

var (
	errNoAnswer = errors.New("the server does not answer itself")
	// watchdogKey is looked at; that nobody uses it does not matter.
	watchdogKey = []byte("weir:watchdog")
)

// keyLooker is what the watchdog needs of a limiter.
type keyLooker interface {
	Inspect(key []byte) (engine.Info, bool)
}

// watchdog tells systemd that the server answers, for as long as it does: it asks by the
// road that clients take, and looks at a key. That there is no leader is no reason to
// restart a node, so nothing is decided.
type watchdog struct {
	addr  string // of a port for clients; any answer will do, so one with TLS too
	node  keyLooker
	every time.Duration
	alive func() // tells systemd
	log   *slog.Logger
}

// watchdogEvery is how often systemd wants to hear, a part of what it waits; 0: it does
// not.
func watchdogEvery(getenv func(string) string) time.Duration {
	us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	wait := time.Duration(us) * time.Microsecond
	if pid := getenv("WATCHDOG_PID"); err != nil || wait < watchdogLeast || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return wait / watchdogParts
}

// startWatchdog keeps systemd content where it asked for that, until the returned
// function is called.
func startWatchdog(log *slog.Logger, addr string, node keyLooker) (stop func()) {
	every := watchdogEvery(os.Getenv)
	if every == 0 {
		return func() {}
	}
	w := &watchdog{addr, node, every, func() { notify(log, nowAlive) }, log}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { w.run(done) })
	return func() {
		close(done)
		running.Wait()
	}
}

func (w *watchdog) run(done <-chan struct{}) {
	due := time.NewTicker(w.every)
	defer due.Stop()
	for {
		if err := w.ask(); err != nil {
			w.log.Error("systemd is not told that the server is alive", "error", err)
		} else {
			w.alive()
		}
		select {
		case <-done:
			return
		case <-due.C:
		}
	}
}

// ask is nil when the port and the limiter have answered within one turn.
func (w *watchdog) ask() error {
	answers := make(chan error, 2)
	go func() { answers <- ping(w.addr, w.every) }()
	go func() { // one that is stuck stays so until systemd ends the process
		w.node.Inspect(watchdogKey)
		answers <- nil
	}()
	late := time.NewTimer(w.every)
	defer late.Stop()
	for range cap(answers) {
		select {
		case err := <-answers:
			if err != nil {
				return fmt.Errorf("%w: %w", errNoAnswer, err)
			}
		case <-late.C:
			return fmt.Errorf("%w within %v", errNoAnswer, w.every)
		}
	}
	return nil
}

// ping connects and waits for a line. PONG, that a password is needed, that there are
// too many clients or that the port wants TLS: each says that somebody is there.
func ping(addr string, wait time.Duration) error {
	conn, err := net.DialTimeout("tcp", addr, wait)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	_, err = bufio.NewReader(conn).ReadString('\n')
	return err
}
