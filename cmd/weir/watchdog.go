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

// nowAlive tells systemd that the server is alive; see sd_notify(3).
const nowAlive = "WATCHDOG=1"

const (
	// watchdogParts is how often the watchdog checks the server within systemd's timeout, because one answer may be
	// lost.
	watchdogParts = 3
	// watchdogLeast is the shortest timeout that leaves time for a check.
	watchdogLeast = 300 * time.Millisecond
)

var (
	errNoAnswer = errors.New("the server did not answer its own request")
	// watchdogKey is the key that the watchdog reads. It need not exist.
	watchdogKey = []byte("weir:watchdog")
)

// keyLooker is the part of a limiter that the watchdog needs.
type keyLooker interface {
	Inspect(key []byte) (engine.Info, bool)
}

// watchdog tells systemd that the server answers, while it does. It uses the same path as clients, and reads a key. It
// makes no decision, because a missing leader is no reason to restart a node.
type watchdog struct {
	addr  string // of a port for clients; any answer suffices, so a TLS port works too
	node  keyLooker
	every time.Duration
	alive func() // notifies systemd
	log   *slog.Logger
}

// watchdogEvery returns the interval at which to notify systemd, a part of systemd's timeout. It returns 0 if systemd
// expects no messages.
func watchdogEvery(getenv func(string) string) time.Duration {
	us, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	wait := time.Duration(us) * time.Microsecond
	if pid := getenv("WATCHDOG_PID"); err != nil || wait < watchdogLeast || pid != "" &&
		pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return wait / watchdogParts
}

// startWatchdog notifies systemd if systemd asked for that, until the returned function is called.
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
			w.log.Error("the server failed its own check, so systemd gets no keep-alive", "error", err)
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

// ask returns nil if the port and the limiter answered within one interval.
func (w *watchdog) ask() error {
	answers := make(chan error, 2)
	go func() { answers <- ping(w.addr, w.every) }()
	go func() { // a stuck goroutine stays until systemd ends the process
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

// ping connects and waits for a line. Any line proves that the server answers: PONG, a required password, too many
// clients, or a TLS error.
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
