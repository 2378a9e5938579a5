package service

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
)

const (
	// MaxTopics bounds the channels and patterns of one client; who wants more
	// channels than that takes a pattern.
	MaxTopics = 128
	// maxEventsPerSecond bounds the messages the server sends to subscribers and
	// monitors in a second, so that listening never slows deciding: at about 1 µs
	// each they take at most 5 % of a core. What is above is dropped and counted.
	maxEventsPerSecond = 50_000
	// deniedPrefix begins the channel of every denial; the algorithm follows, or for a
	// check policyPrefix and the name of its policy.
	deniedPrefix = "weir:denied:"
	// lockoutPrefix begins the channel of every lock-out, which has the same ends.
	lockoutPrefix = "weir:lockout:"
	policyPrefix  = "policy:"
	// MaxPolicyChannels is two for each policy that there may be.
	MaxPolicyChannels = 2 * engine.MaxPolicies
)

// Events hands events to those who listen. While nobody does, deciding
// pays no more than a load of listeners.
type Events struct {
	Listeners atomic.Int32  // topics subscribed to, over all listeners
	attention *atomic.Int32 // see service; monitors count in it
	Dropped   atomic.Int64
	second    atomic.Int64 // of which sent counts
	sent      atomic.Int64

	mu       sync.RWMutex
	denials  [engine.Scripted + 1]*denialChannel
	lockouts *denialChannel            // of RL.STRIKE
	Policies map[string]*denialChannel // of policies that denied something or locked somebody out lately
	All      map[subscription]struct{}
	topics   map[Topic]int // Subscribers of each
	monitors map[Listener]struct{}
}

// Listener hears events. Its methods may be called from any goroutine and never wait: a
// listener that does not keep up is cut.
type Listener interface {
	// Deliver hands over a message on a channel that the listener subscribed to by t.
	Deliver(t Topic, channel string, payload []byte)
	// Show hands over a command, as MONITOR writes it.
	Show(line []byte)
}

// Topic is something to subscribe to: a channel or a pattern of channels.
type Topic struct {
	Name    string
	Pattern bool
}

// denialChannel knows who hears of one algorithm's or policy's denials or lock-outs, so that
// an event costs what its messages cost and no comparison of names.
type denialChannel struct {
	name  string
	heard map[subscription]struct{}
}

type subscription struct {
	listener Listener
	topic    Topic
}

func newEvents(attention *atomic.Int32) *Events {
	h := &Events{attention: attention, Policies: make(map[string]*denialChannel), All: make(map[subscription]struct{}),
		topics: make(map[Topic]int), monitors: make(map[Listener]struct{})}
	for a := range h.denials {
		h.denials[a] = h.channel(deniedPrefix + engine.Algorithm(a).String())
	}
	h.lockouts = h.channel(lockoutPrefix + engine.Strike.String())
	return h
}

// channel makes a channel for those who listen to it now.
func (h *Events) channel(name string) *denialChannel {
	ch := &denialChannel{name, make(map[subscription]struct{})}
	for sub := range h.All {
		ch.admit(sub)
	}
	return ch
}

// admit adds a subscription if it is to this channel.
func (ch *denialChannel) admit(sub subscription) {
	if sub.topic.matches(ch.name) {
		ch.heard[sub] = struct{}{}
	}
}

// eachChannel visits the channels that are known.
func (h *Events) eachChannel(visit func(*denialChannel)) {
	for _, ch := range h.denials {
		visit(ch)
	}
	visit(h.lockouts)
	for _, ch := range h.Policies {
		visit(ch)
	}
}

func (t Topic) matches(channel string) bool {
	if t.Pattern {
		return engine.MatchGlob([]byte(t.Name), []byte(channel))
	}
	return t.Name == channel
}

// Subscribe adds a topic that l does not have yet.
func (h *Events) Subscribe(l Listener, t Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topics[t]++
	h.Listeners.Add(1)
	sub := subscription{l, t}
	h.All[sub] = struct{}{}
	h.eachChannel(func(ch *denialChannel) { ch.admit(sub) })
}

// Unsubscribe takes away a topic that l has.
func (h *Events) Unsubscribe(l Listener, t Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topics[t]--; h.topics[t] == 0 {
		delete(h.topics, t)
	}
	h.Listeners.Add(-1)
	sub := subscription{l, t}
	delete(h.All, sub)
	h.eachChannel(func(ch *denialChannel) { delete(ch.heard, sub) })
}

// Monitor begins or ends MONITOR for l.
func (h *Events) Monitor(l Listener, on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, is := h.monitors[l]; is == on {
		return
	}
	if on {
		h.monitors[l] = struct{}{}
		h.attention.Add(1)
	} else {
		delete(h.monitors, l)
		h.attention.Add(-1)
	}
}

// Denied publishes a denial, if anybody listens.
func (h *Events) Denied(op *engine.Op, d *engine.Decision) {
	if h.Listeners.Load() == 0 {
		return
	}
	policy, a, key := deniedBy(op, d)
	ch := h.denials[a]
	if policy != nil {
		ch = h.policyChannel(deniedPrefix, policy)
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	h.publish(ch, key)
}

// policyChannel finds or makes the channel of a policy. Those of policies that are gone
// are forgotten with all others when there are more than there can be policies.
func (h *Events) policyChannel(prefix string, policy []byte) *denialChannel {
	var few [len(lockoutPrefix) + len(policyPrefix) + engine.MaxPolicyLen]byte
	name := append(append(append(few[:0], prefix...), policyPrefix...), policy...)
	h.mu.RLock()
	ch := h.Policies[string(name)]
	h.mu.RUnlock()
	if ch != nil {
		return ch
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if ch := h.Policies[string(name)]; ch != nil {
		return ch
	}
	if len(h.Policies) >= MaxPolicyChannels {
		clear(h.Policies)
	}
	ch = h.channel(string(name))
	h.Policies[ch.name] = ch
	return ch
}

// publish never waits: a listener that does not keep up is cut, and the
// budget ends the work of a flood.
func (h *Events) publish(ch *denialChannel, key []byte) {
	second := time.Now().Unix()
	for sub := range ch.heard {
		if !h.spend(second) {
			return
		}
		sub.listener.Deliver(sub.topic, ch.name, key)
	}
}

// Spend takes one message from the budget of a second.
func (h *Events) spend(now int64) bool {
	if second := h.second.Load(); second != now && h.second.CompareAndSwap(second, now) {
		h.sent.Store(0)
	}
	if h.sent.Add(1) > maxEventsPerSecond {
		h.Dropped.Add(1)
		return false
	}
	return true
}

// ShowCommand shows a command to every monitor.
func (h *Events) ShowCommand(addr string, cmd *Command, args [][]byte) {
	if h.attention.Load() == 0 {
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if len(h.monitors) == 0 {
		return
	}
	now := time.Now()
	line := monitorLine(now, addr, ShownArgs(cmd, args))
	for m := range h.monitors {
		if !h.spend(now.Unix()) {
			return
		}
		m.Show(line)
	}
}

// monitorLine is +seconds.micros [db addr] "arg" "arg", as Redis writes it.
func monitorLine(now time.Time, addr string, args []string) []byte {
	micros := strconv.Itoa(1_000_000 + now.Nanosecond()/1000)
	line := append([]byte("+"), strconv.FormatInt(now.Unix(), 10)...)
	line = append(line, "."+micros[1:]+" [0 "+addr+"]"...)
	for _, a := range args {
		line = append(line, ' ')
		line = strconv.AppendQuoteToASCII(line, a)
	}
	return append(line, "\r\n"...)
}

// Subscribers returns how many subscribers each channel has, or each pattern.
func (h *Events) Subscribers(patterns bool) map[string]int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	counts := make(map[string]int)
	for t, n := range h.topics {
		if t.Pattern == patterns {
			counts[t.Name] = n
		}
	}
	return counts
}
