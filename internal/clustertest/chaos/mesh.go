package chaos

import (
	"slices"
	"strings"
	"time"
)

// Mesh is the network between nodes. It has a proxy for each directed pair, and a wire for each direction.
type Mesh struct {
	addrs   []string   // the real addresses of the nodes
	wires   [][]*Wire  // [from][to]
	proxies [][]*Proxy // [dialing][dialed]
}

// newMesh puts proxies between nodes with these inter-node addresses.
func newMesh(addrs []string) (*Mesh, error) {
	m := &Mesh{addrs: addrs, wires: make([][]*Wire, len(addrs)), proxies: make([][]*Proxy, len(addrs))}
	for i := range addrs {
		m.wires[i], m.proxies[i] = make([]*Wire, len(addrs)), make([]*Proxy, len(addrs))
		for j := range addrs {
			m.wires[i][j] = &Wire{}
		}
	}
	return m, m.each(func(i, j int) error {
		p, err := newProxy(addrs[j], m.wires[i][j], m.wires[j][i])
		m.proxies[i][j] = p
		return err
	})
}

// each calls f for every directed pair.
func (m *Mesh) each(f func(from, to int) error) error {
	for i := range m.addrs {
		for j := range m.addrs {
			if i != j {
				if err := f(i, j); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// DialMap returns the value of --test-dial for a node: the address of each peer, and the proxy to dial instead.
func (m *Mesh) DialMap(node int) string {
	var pairs []string
	for j, addr := range m.addrs {
		if j != node {
			pairs = append(pairs, addr+"="+m.proxies[node][j].Addr())
		}
	}
	return strings.Join(pairs, ",")
}

// Split delivers only traffic within a group. A node in no group is alone.
func (m *Mesh) Split(groups ...[]int) {
	_ = m.each(func(i, j int) error {
		together := slices.ContainsFunc(
			groups, func(g []int) bool { return slices.Contains(g, i) && slices.Contains(g, j) })
		if !together {
			m.wires[i][j].Cut()
		}
		return nil
	})
}

// CutOneWay holds the traffic from a node to the others, or with inbound from the others to the node.
func (m *Mesh) CutOneWay(node int, inbound bool, others []int) {
	for _, other := range others {
		switch {
		case other == node:
		case inbound:
			m.wires[other][node].Cut()
		default:
			m.wires[node][other].Cut()
		}
	}
}

// Slow delays all traffic from and to a node.
func (m *Mesh) Slow(node int, delay, jitter time.Duration) {
	for other := range m.addrs {
		m.wires[node][other].Slow(delay, jitter)
		m.wires[other][node].Slow(delay, jitter)
	}
}

// Reset breaks every connection from and to a node.
func (m *Mesh) Reset(node int) {
	for other := range m.addrs {
		if other != node {
			m.proxies[node][other].Reset()
			m.proxies[other][node].Reset()
		}
	}
}

// Heal ends the faults of every wire. It delivers held bytes now. With broken it drops them and their connections
// instead.
func (m *Mesh) Heal(broken bool) {
	_ = m.each(func(i, j int) error {
		if broken {
			m.proxies[i][j].Reset()
		}
		return nil
	})
	_ = m.each(func(i, j int) error {
		m.wires[i][j].Slow(0, 0)
		m.wires[i][j].Heal()
		return nil
	})
}

func (m *Mesh) Close() {
	_ = m.each(func(i, j int) error {
		if m.proxies[i][j] != nil {
			m.proxies[i][j].Close()
		}
		return nil
	})
}
