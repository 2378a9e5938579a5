package chaos

import (
	"net"
	"sync"
	"time"
)

// proxyDialTimeout is for a loopback address, at which a stopped node refuses at once.
const proxyDialTimeout = time.Second

// Proxy carries the connections that one node opens to another. Each direction uses its own wire.
type Proxy struct {
	ln          net.Listener
	target      string
	forth, back *Wire

	mu     sync.Mutex
	links  map[*link]struct{}
	closed bool
	wg     sync.WaitGroup
}

// newProxy listens on a free loopback port until Close.
func newProxy(target string, forth, back *Wire) (*Proxy, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{ln: ln, target: target, forth: forth, back: back, links: map[*link]struct{}{}}
	p.wg.Go(p.accept)
	return p, nil
}

func (p *Proxy) Addr() string { return p.ln.Addr().String() }

// Close ends all connections and waits for their goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.ln.Close()
	p.Reset()
	p.wg.Wait()
}

// Reset breaks every current connection with a TCP reset to both ends.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.end(true)
	}
}

func (p *Proxy) accept() {
	for {
		from, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.carry(from) })
	}
}

// carry serves one connection until its end.
func (p *Proxy) carry(from net.Conn) {
	defer from.Close()
	to, err := net.DialTimeout("tcp", p.target, proxyDialTimeout)
	if err != nil {
		return
	}
	l := &link{from: from, to: to, done: make(chan struct{})}
	defer l.end(false)
	if !p.register(l) {
		return
	}
	defer p.unregister(l)
	var both sync.WaitGroup
	both.Go(func() { defer l.end(false); transfer(p.forth, from, to, l.done) })
	both.Go(func() { defer l.end(false); transfer(p.back, to, from, l.done) })
	both.Wait()
}

// register adds a connection to the ones that Reset breaks. It returns false if the proxy is closed already.
func (p *Proxy) register(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[l] = struct{}{}
	return !p.closed
}

func (p *Proxy) unregister(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
