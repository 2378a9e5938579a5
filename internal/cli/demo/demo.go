// Package demo runs a cluster of three nodes on this machine, as child processes of weir demo.
package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Command runs a cluster of three nodes on this machine, to try out a cluster.
type Command struct {
	Dir       string `env:"-" default:"weir-data-cluster" placeholder:"DIR" help:"Directory for the state, configuration and logs of the nodes."`
	FirstPort int    `env:"-" least:"1" default:"6380" help:"Ports: clients at +0, +2, +4, HTTP at +1, +3, +5, other nodes at +10, +11, +12. If one is taken, all move by 20 until they are free."`
	Groups    int    `least:"1" default:"1" help:"Number of Raft groups of a new cluster, as for weir serve."`
}

const (
	// NodeName is the hidden command that runs one node. The names of commands that users do not type begin with two
	// underscores.
	NodeName = "__demo-node"
	name     = "demo"
	// lockFile is locked while a demo runs in a directory. pidFileName contains the id of that process.
	lockFile, pidFileName = "LOCK", "demo.pid"
)

var (
	errStopped     = errors.New("stopped before the nodes had elected a leader")
	errNoNodesLeft = errors.New("all nodes have ended")
	errElsewhere   = errors.New("a weir demo runs in this directory already")
)

// Run runs the demo until a signal arrives, and then stops all nodes.
func (d *Command) Run() error {
	// A terminal that closes sends SIGHUP.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	return d.run(os.Stdin, os.Stdout, signals)
}

func (d *Command) run(in io.Reader, out io.Writer, signals <-chan os.Signal) error {
	dir, err := filepath.Abs(d.Dir)
	if err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	defer unlock()
	demo, err := newDemo(dir, d.FirstPort, d.Groups, out)
	if err != nil {
		return err
	}
	defer demo.stop(signals)
	if err := demo.startAll(signals); err != nil {
		return err
	}
	demo.explain()
	return demo.watch(linesOf(in), signals)
}

// lock creates the directory, and ensures that only one demo runs in it.
func lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("--dir: %w: choose a directory that you may write to", err)
	}
	switch foreign, err := foreignIn(dir); {
	case err != nil:
		return nil, fmt.Errorf("--dir: %w: choose a directory that you may read", err)
	case foreign != "":
		return nil, fmt.Errorf(
			"--dir %s: it holds %s, which weir demo did not write: choose an empty or a new directory", dir, foreign)
	}
	pidFile := filepath.Join(dir, pidFileName)
	lock, err := vfs.Default.Lock(filepath.Join(dir, lockFile))
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("--dir: %w: choose a directory that you may write to", err)
	}
	if err != nil {
		pid, _ := os.ReadFile(pidFile)
		return nil, fmt.Errorf("--dir %s: %w (pid %s): stop that demo, or choose another --dir", dir, errElsewhere,
			strings.TrimSpace(string(pid)))
	}
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("--dir: %w", err), lock.Close())
	}
	return func() {
		_ = os.Remove(pidFile)
		_ = lock.Close()
	}, nil
}

// foreignIn returns the name of a file in the directory that weir demo does not write, or "". weir demo must neither
// lock nor load the data of another server.
func foreignIn(dir string) (name string, err error) {
	own := []string{lockFile, pidFileName}
	for _, id := range nodeIDs {
		own = append(own, id, id+".yaml", id+".log")
	}
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if !slices.Contains(own, entry.Name()) {
			return entry.Name(), nil
		}
	}
	return "", err
}

// linesOf sends a value for each line, and closes the channel at the end of input. It reads until the process ends,
// because a read from a terminal cannot be interrupted.
func linesOf(in io.Reader) <-chan struct{} {
	lines := make(chan struct{})
	go func() {
		defer close(lines)
		buffer := make([]byte, 1)
		for {
			n, err := in.Read(buffer)
			if n == 1 && buffer[0] == '\n' {
				lines <- struct{}{}
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}
