package detector

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/internal/faults"
)

const (
	// ticksPerLimit divides the limit: the detector looks at all hosts so often.
	ticksPerLimit = 10
	// pingsPerLimit divides the limit: a host that answers is pinged so often.
	pingsPerLimit = 5
	// pauseFraction divides the limit. A longer time between two looks means that this process was paused.
	pauseFraction = 2
	// pingTimeouts bounds a ping, in limits. A ping that waits longer than the limit is no silence by itself: a late
	// answer ends the silence.
	pingTimeouts = 3
)

// Host is another host of the cluster.
type Host struct {
	Addr string // its inter-node address, which all groups share
	ID   string // its node id in the first group
}

// Network sends the messages of a detector.
type Network interface {
	// Ping asks a host for a sign of life. Its error is ErrNoDetector if the host cannot take part.
	Ping(ctx context.Context, to Host) error
	// Ask sends a question to a host, and returns what Detector.Answer returned there.
	Ask(ctx context.Context, to Host, question []byte) ([]byte, error)
}

// Config configures a detector.
type Config struct {
	Self    string        // the inter-node address of this host
	Limit   time.Duration // a host that is not heard for so long is silent
	Members func() []Host // the other hosts; called at each look
	Network Network
	Groups  Groups
	Log     *slog.Logger
	Faults  faults.Set
}

// Detector detects silent hosts. Its methods may be called from any goroutine.
type Detector struct {
	Config
	// Confirmed and Unconfirmed count silences of hosts: those that another host confirmed, and the others.
	Confirmed, Unconfirmed atomic.Int64

	tasks  sync.WaitGroup // pings, questions and elections that the detector has begun
	mu     sync.Mutex
	looked time.Time // time of the last look
	hosts  map[string]*host
}

// host is what the detector knows about another host.
type host struct {
	Host
	heard    time.Time // zero: not yet, or the host cannot take part
	pinging  bool      // a ping is under way
	pingNext time.Time
	silence  *silence // nil: the host is not silent
}

// New returns a detector. Run starts it.
func New(c Config) *Detector { return &Detector{Config: c, hosts: map[string]*host{}} }

// Run detects silent hosts until ctx ends, and returns when no goroutine of the detector runs.
func (d *Detector) Run(ctx context.Context) {
	tick := time.NewTicker(d.Limit / ticksPerLimit)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.look(ctx, time.Now())
		case <-ctx.Done():
			d.tasks.Wait()
			return
		}
	}
}

// look pings the hosts, and acts on those that are silent.
func (d *Detector) look(ctx context.Context, now time.Time) {
	members := d.Members()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noticePause(now)
	d.looked = now
	d.follow(members)
	for _, h := range d.hosts {
		d.ping(ctx, h, now)
		d.judge(ctx, h, now)
	}
}

// noticePause starts the measurement again if this process was paused: then it heard nobody, and the silence is its
// own. The caller holds mu.
func (d *Detector) noticePause(now time.Time) {
	if d.looked.IsZero() || now.Sub(d.looked) < d.Limit/pauseFraction {
		return
	}
	d.looked = now
	for _, h := range d.hosts {
		if h.silence = nil; !h.heard.IsZero() {
			h.heard = now
		}
	}
}

// follow adjusts the hosts to the members. The caller holds mu.
func (d *Detector) follow(members []Host) {
	wanted := make(map[string]string, len(members))
	for _, m := range members {
		wanted[m.Addr] = m.ID
		if h := d.hosts[m.Addr]; h == nil || h.ID != m.ID {
			d.hosts[m.Addr] = &host{Host: m}
		}
	}
	for addr := range d.hosts {
		if _, ok := wanted[addr]; !ok {
			delete(d.hosts, addr)
		}
	}
}

// ping begins a ping if one is due. The caller holds mu.
func (d *Detector) ping(ctx context.Context, h *host, now time.Time) {
	if h.pinging || now.Before(h.pingNext) {
		return
	}
	h.pinging, h.pingNext = true, now.Add(d.Limit/pingsPerLimit)
	d.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, pingTimeouts*d.Limit)
		defer cancel()
		err := d.Network.Ping(ctx, h.Host)
		d.mu.Lock()
		defer d.mu.Unlock()
		h.pinging = false
		d.answered(h, err)
	})
}

// Hear records a sign of life of a host. A host without a detector gives none.
func (d *Detector) Hear(addr string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if h := d.hosts[addr]; h != nil {
		d.answered(h, nil)
	}
}
