package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/internal/cli/cluster"
	"github.com/weir-project/weir/internal/cli/remote"
)

const (
	// electionTimeout bounds the wait for a leader. An election takes about a second, but this machine may be busy.
	electionTimeout = time.Minute
	// stopTimeout bounds the wait for nodes that were asked to stop. It is longer than the time in which nodes deliver
	// their last replies.
	stopTimeout = 20 * time.Second
	// sameSignal is the time within which a repeated signal counts as the same one. Some programs pass a signal on to a
	// process and to its group.
	sameSignal = 500 * time.Millisecond
	// pollEvery is the interval at which demo asks the nodes for a leader, or checks whether they have stopped.
	pollEvery = 100 * time.Millisecond
	// lastWords is how many log lines of a failed node are shown.
	lastWords = 3
)

// config is the configuration file of a node.
type config struct {
	NodeID   string `yaml:"node-id"`
	DataDir  string `yaml:"data-dir"`
	Listen   string `yaml:"listen"`
	HTTP     string `yaml:"http"`
	RaftAddr string `yaml:"raft-addr"`
	Join     string `yaml:"join"`
	Groups   int    `yaml:"groups,omitempty"`
}

// node is one of the three nodes. process is nil if the node does not run as a child.
type node struct {
	config  config
	file    string // its configuration file
	log     string
	process *os.Process
}

// demo runs the nodes.
type demo struct {
	dir       string
	out       io.Writer
	weir      string // the program, as a user may type it
	nodes     []*node
	groups    int
	clusterID string
	parent    *os.File // the demo's end of a pipe: closing it stops the nodes
	children  *os.File // the nodes' end of that pipe
	ended     chan end
}

// end reports that a child has ended.
type end struct {
	node  *node
	state *os.ProcessState
}

func newDemo(dir string, firstPort, groups int, out io.Writer) (*demo, error) {
	d := &demo{dir: dir, out: out, groups: groups, weir: typed(), ended: make(chan end, len(nodeIDs))}
	if err := d.plan(firstPort); err != nil {
		return nil, err
	}
	var err error
	d.children, d.parent, err = os.Pipe()
	return d, err
}

// typed returns the program as a user may type it in any directory.
func typed() string {
	if strings.ContainsRune(os.Args[0], filepath.Separator) {
		if path, err := os.Executable(); err == nil {
			return path
		}
	}
	return os.Args[0]
}

func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, format+"\n", args...) // an error has no effect: the terminal may be closed
}

// start starts a node as a child.
func (d *demo) start(n *node) error {
	text, err := yaml.Marshal(n.config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(n.file, text, 0o600); err != nil {
		return err
	}
	log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, NodeName, "--config", n.file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.children, log, log
	cmd.SysProcAttr = apartFromTerminal()
	if err := cmd.Start(); err != nil {
		return err
	}
	n.process = cmd.Process
	go func() {
		_ = cmd.Wait() // the process state says how it ended
		d.ended <- end{n, cmd.ProcessState}
	}()
	return nil
}

// running counts the children.
func (d *demo) running() (count int) {
	for _, n := range d.nodes {
		if n.process != nil {
			count++
		}
	}
	return count
}

// startAll starts the nodes and waits until they have a leader. It fails when one of them ends: two nodes would
// suffice, but the user should see the problem.
func (d *demo) startAll(signals <-chan os.Signal) error {
	for _, n := range d.nodes {
		if err := d.start(n); err != nil {
			return fmt.Errorf("node %s: %w", n.config.NodeID, err)
		}
	}
	d.say("Starting three nodes; waiting for them to elect a leader.")
	deadline := time.After(electionTimeout)
	for {
		select {
		case e := <-d.ended:
			e.node.process = nil
			return fmt.Errorf("node %s does not start (%v). The end of its log, %s:\n%s", e.node.config.NodeID, e.state,
				e.node.log, e.node.tail())
		case <-signals:
			return errStopped
		case <-deadline:
			return fmt.Errorf("no leader was elected within %v: see the logs in %s", electionTimeout, d.dir)
		case <-time.After(pollEvery):
		}
		if status, err := d.nodes[0].status(); err == nil && status.AllUp(len(d.nodes)) {
			d.clusterID = status.ClusterID
			return nil
		}
	}
}

func (n *node) status() (remote.Status, error) {
	return (&cluster.Command{Addr: n.config.Listen}).AskStatus()
}

// tail returns the last lines of the node's log.
func (n *node) tail() string {
	text, err := os.ReadFile(n.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "    " + strings.Join(lines[max(0, len(lines)-lastWords):], "\n    ")
}

// stop ends all nodes, also a node that a user started in another terminal, and waits for their end. A signal during
// the wait kills the children at once.
func (d *demo) stop(signals <-chan os.Signal) {
	d.parent.Close()
	defer d.children.Close()
	began, deadline := time.Now(), time.After(stopTimeout)
	for d.running() > 0 {
		select {
		case e := <-d.ended:
			e.node.process = nil
			continue
		case <-deadline:
		case s := <-signals:
			if isHangup(s) || time.Since(began) < sameSignal { // a closing terminal may send SIGHUP twice
				continue
			}
		}
		for _, n := range d.nodes {
			if n.process != nil {
				_ = n.process.Kill() // the process may have ended already
			}
		}
	}
	for _, n := range d.nodes {
		if err := d.stopStray(n); err != nil {
			d.say("Node %s may still be running: %v", n.config.NodeID, err)
		}
	}
}

// stopStray stops a node that was started in another terminal to replace one that ended.
func (d *demo) stopStray(n *node) error {
	if status, err := n.status(); err != nil || status.Node != n.config.NodeID || status.ClusterID != d.clusterID {
		return nil // the address is free, or another server uses it
	}
	conn, err := new(remote.Flags).Dial(n.config.Listen, "")
	if err != nil {
		return err
	}
	defer conn.Close()
	_, _ = conn.Do("SHUTDOWN") // a server that shuts down closes the connection without a reply
	for began := time.Now(); time.Since(began) < stopTimeout; time.Sleep(pollEvery) {
		if _, err := n.status(); err != nil {
			return nil
		}
	}
	return errors.New("it did not stop")
}
