package demo

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/weir-project/weir/internal/cli/remote"
)

// explain prints how to reach the nodes, and what to try.
func (d *demo) explain() {
	status, err := d.nodes[0].status()
	if err == nil {
		d.say("")
		err = status.WriteTable(d.out)
	}
	if err != nil {
		d.say("weir cluster status: %v", err)
	}
	a, b, c := d.nodes[0].config, d.nodes[1].config, d.nodes[2].config
	d.say(`
Ask any node, a leader decides:
    %s RL.TOKENBUCKET user:42 5/m 3
    %s RL.TOKENBUCKET user:42 5/m 3
Look at the cluster:
    %s cluster status --addr %s
Look at the page of a node:
    http://%s/
Is a node ready:
    curl %s/readyz
Follow the logs:
    tail -f %s/?.log
`, d.client(a.Listen), d.client(c.Listen), d.weir, b.Listen, a.HTTP, a.HTTP, shellQuoted(d.dir))
	d.say("Kill a leader and ask another node: it knows the units that were taken.")
	for _, n := range d.nodes {
		role := status.Role(&remote.NodeStatus{ID: n.config.NodeID, Voter: true})
		d.say("    %s %-13s kill -9 %d", n.config.NodeID, role+":", n.process.Pid)
	}
	d.say("\nEnter starts a killed node again. Ctrl-C stops all three and keeps their state in %s;\nremove that "+
		"directory to start with an empty cluster. Other ports, another directory: %s %s --help", d.dir, d.weir, name)
}

// client returns the beginning of a command line for a node. It uses redis-cli if that is installed.
func (d *demo) client(addr string) string {
	if _, err := exec.LookPath("redis-cli"); err == nil {
		return "redis-cli -p " + portOf(addr)
	}
	return d.weir + " call --addr " + addr
}

// watch reports nodes that end, and restarts them at each line of input. It returns at a signal.
func (d *demo) watch(lines <-chan struct{}, signals <-chan os.Signal) error {
	for {
		select {
		case e := <-d.ended:
			e.node.process = nil
			d.sayEnded(e, lines != nil)
			if lines == nil && d.running() == 0 {
				return errNoNodesLeft
			}
		case _, more := <-lines:
			if !more {
				lines = nil
				continue
			}
			d.restart()
		case <-signals:
			d.say("\nStopping.")
			return nil
		}
	}
}

func (d *demo) sayEnded(e end, enter bool) {
	id := e.node.config.NodeID
	d.say("Node %s (pid %d) has ended: %v.", id, e.state.Pid(), e.state)
	if e.state.Exited() { // it ended by itself, not by a signal
		d.say("The end of its log, %s:\n%s", e.node.log, e.node.tail())
	}
	again := fmt.Sprintf("%s serve --config %s", d.weir, shellQuoted(e.node.file))
	if enter {
		d.say("The other nodes continue. Press Enter to start it again, or start it in another terminal:\n    "+
			"%s", again)
		return
	}
	d.say("The other nodes continue. Start it again with:\n    %s", again)
}

// restart starts the nodes that have ended, unless they were started elsewhere.
func (d *demo) restart() {
	for _, n := range d.nodes {
		if n.process != nil {
			continue
		}
		if whom, taken := takenBy(n.config.Listen); taken {
			d.say("Node %s was not started: %s is in use by %s.", n.config.NodeID, n.config.Listen, whom)
			continue
		}
		if err := d.start(n); err != nil {
			d.say("Node %s was not started: %v", n.config.NodeID, err)
			continue
		}
		d.say("Node %s runs again (pid %d).", n.config.NodeID, n.process.Pid)
	}
}
