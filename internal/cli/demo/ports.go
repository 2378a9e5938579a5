package demo

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/internal/cli/listener"
)

// nodeIDs are the names of the nodes.
var nodeIDs = []string{"a", "b", "c"}

const (
	// span is how many ports one layout spans, and step is the distance to the next layout.
	span, step = 13, 20
	// maxLayouts bounds the search for free ports.
	maxLayouts = 50
	maxPort    = 1<<16 - 1
)

// plan chooses the ports and writes the configuration of each node.
func (d *demo) plan(first int) error {
	if first > maxPort-span+1 {
		return fmt.Errorf("--first-port must be 1 to %d, not %d: the nodes' ports span %d", maxPort-span+1, first, span)
	}
	rafts, founded := d.founded()
	if founded {
		for i, addr := range rafts {
			if whom, taken := takenBy(addr); taken {
				return fmt.Errorf("%s, the address of node %s in the cluster in %s, is in use by %s: stop that "+
					"program, or choose another --dir", addr, nodeIDs[i], d.dir, whom)
			}
		}
	}
	for try := range maxLayouts {
		at := first + try*step
		if at > maxPort-span+1 {
			break
		}
		d.nodes = d.layout(at, rafts)
		whom, taken := d.inTheWay()
		if !taken {
			if at != first {
				d.say("So the ports of the nodes begin at %d.", at)
			}
			return nil
		}
		if try == 0 {
			d.say("%s.", whom)
		}
	}
	return fmt.Errorf("no free ports were found from %d on: choose another --first-port", first)
}

// layout gives the nodes their ports, beginning with a first one. A cluster that already exists keeps the addresses by
// which its nodes know each other.
func (d *demo) layout(first int, rafts []string) (nodes []*node) {
	if rafts == nil {
		for i := range nodeIDs {
			rafts = append(rafts, onLoopback(first+10+i))
		}
	}
	for i, id := range nodeIDs {
		nodes = append(nodes, &node{
			file: filepath.Join(d.dir, id+".yaml"), log: filepath.Join(d.dir, id+".log"),
			config: config{
				NodeID: id, DataDir: filepath.Join(d.dir, id),
				Listen: onLoopback(first + 2*i), HTTP: onLoopback(first + 2*i + 1),
				RaftAddr: rafts[i], Join: strings.Join(rafts, ","), Groups: d.groups,
			},
		})
	}
	return nodes
}

func onLoopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// portOf returns the port of an address made by onLoopback.
func portOf(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// founded returns the inter-node addresses of the cluster in the directory, if a cluster exists.
func (d *demo) founded() (rafts []string, ok bool) {
	for _, id := range nodeIDs {
		var config config
		text, err := os.ReadFile(filepath.Join(d.dir, id+".yaml"))
		if err == nil {
			err = yaml.Unmarshal(text, &config)
		}
		if _, errState := os.Stat(filepath.Join(d.dir, id)); err != nil || errState != nil || config.RaftAddr == "" {
			return nil, false
		}
		rafts = append(rafts, config.RaftAddr)
	}
	return rafts, true
}

// inTheWay returns the holder of the first port that is not free.
func (d *demo) inTheWay() (whom string, taken bool) {
	for _, n := range d.nodes {
		for _, addr := range []string{n.config.Listen, n.config.HTTP, n.config.RaftAddr} {
			if whom, taken := takenBy(addr); taken {
				return addr + " is taken by " + whom, true
			}
		}
	}
	return "", false
}

// takenBy tries to listen at an address, and returns the holder if it is taken.
func takenBy(addr string) (whom string, taken bool) {
	ln, err := net.Listen("tcp", addr)
	if err == nil {
		ln.Close()
		return "", false
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err.Error(), true
	}
	return cmp.Or(listener.WhoListens(addr), "another process"), true
}
