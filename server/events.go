package server

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
)

const (
	// maxTopics bounds the channels and patterns of one client; who wants more
	// channels than that takes a pattern.
	maxTopics = 128
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
	// maxPolicyChannels is two for each policy that there may be.
	maxPolicyChannels = 2 * engine.MaxPolicies
)

// eventHub hands events to those who listen. While nobody does, deciding
// pays no more than a load of listeners.
type eventHub struct {
	listeners atomic.Int32  // topics subscribed to, over all listeners
	attention *atomic.Int32 // see service; monitors count in it
	dropped   atomic.Int64
	second    atomic.Int64 // of which sent counts
	sent      atomic.Int64

	mu       sync.RWMutex
	denials  [engine.Scripted + 1]*denialChannel
	lockouts *denialChannel            // of RL.STRIKE
	policies map[string]*denialChannel // of policies that denied something or locked somebody out lately
	all      map[subscription]struct{}
	topics   map[topic]int // subscribers of each
	monitors map[listener]struct{}
}

// listener hears events. Its methods may be called from any goroutine and never wait: a
// listener that does not keep up is cut.
type listener interface {
	// deliver hands over a message on a channel that the listener subscribed to by t.
	deliver(t topic, channel string, payload []byte)
	// show hands over a command, as MONITOR writes it.
	show(line []byte)
}

// topic is something to subscribe to: a channel or a pattern of channels.
type topic struct {
	name    string
	pattern bool
}

// denialChannel knows who hears of one algorithm's or policy's denials or lock-outs, so that
// an event costs what its messages cost and no comparison of names.
type denialChannel struct {
	name  string
	heard map[subscription]struct{}
}

type subscription struct {
	listener listener
	topic    topic
}

func newEventHub(attention *atomic.Int32) *eventHub {
	h := &eventHub{attention: attention, policies: make(map[string]*denialChannel), all: make(map[subscription]struct{}),
		topics: make(map[topic]int), monitors: make(map[listener]struct{})}
	for a := range h.denials {
		h.denials[a] = h.channel(deniedPrefix + engine.Algorithm(a).String())
	}
	h.lockouts = h.channel(lockoutPrefix + engine.Strike.String())
	return h
}

// channel makes a channel for those who listen to it now.
func (h *eventHub) channel(name string) *denialChannel {
	ch := &denialChannel{name, make(map[subscription]struct{})}
	for sub := range h.all {
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
func (h *eventHub) eachChannel(visit func(*denialChannel)) {
	for _, ch := range h.denials {
		visit(ch)
	}
	visit(h.lockouts)
	for _, ch := range h.policies {
		visit(ch)
	}
}

func (t topic) matches(channel string) bool {
	if t.pattern {
		return engine.MatchGlob([]byte(t.name), []byte(channel))
	}
	return t.name == channel
}

// subscribe adds a topic that l does not have yet.
func (h *eventHub) subscribe(l listener, t topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topics[t]++
	h.listeners.Add(1)
	sub := subscription{l, t}
	h.all[sub] = struct{}{}
	h.eachChannel(func(ch *denialChannel) { ch.admit(sub) })
}

// unsubscribe takes away a topic that l has.
func (h *eventHub) unsubscribe(l listener, t topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topics[t]--; h.topics[t] == 0 {
		delete(h.topics, t)
	}
	h.listeners.Add(-1)
	sub := subscription{l, t}
	delete(h.all, sub)
	h.eachChannel(func(ch *denialChannel) { delete(ch.heard, sub) })
}

// monitor begins or ends MONITOR for l.
func (h *eventHub) monitor(l listener, on bool) {
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

// denied publishes a denial, if anybody listens.
func (h *eventHub) denied(op *engine.Op, d *engine.Decision) {
	if h.listeners.Load() == 0 {
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
func (h *eventHub) policyChannel(prefix string, policy []byte) *denialChannel {
	var few [len(lockoutPrefix) + len(policyPrefix) + engine.MaxPolicyLen]byte
	name := append(append(append(few[:0], prefix...), policyPrefix...), policy...)
	h.mu.RLock()
	ch := h.policies[string(name)]
	h.mu.RUnlock()
	if ch != nil {
		return ch
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if ch := h.policies[string(name)]; ch != nil {
		return ch
	}
	if len(h.policies) >= maxPolicyChannels {
		clear(h.policies)
	}
	ch = h.channel(string(name))
	h.policies[ch.name] = ch
	return ch
}

// publish never waits: a listener that does not keep up is cut, and the
// budget ends the work of a flood.
func (h *eventHub) publish(ch *denialChannel, key []byte) {
	second := time.Now().Unix()
	for sub := range ch.heard {
		if !h.spend(second) {
			return
		}
		sub.listener.deliver(sub.topic, ch.name, key)
	}
}

// spend takes one message from the budget of a second.
func (h *eventHub) spend(now int64) bool {
	if second := h.second.Load(); second != now && h.second.CompareAndSwap(second, now) {
		h.sent.Store(0)
	}
	if h.sent.Add(1) > maxEventsPerSecond {
		h.dropped.Add(1)
		return false
	}
	return true
}

// showCommand shows a command to every monitor.
func (h *eventHub) showCommand(addr string, cmd *commandInfo, args [][]byte) {
	if h.attention.Load() == 0 {
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if len(h.monitors) == 0 {
		return
	}
	now := time.Now()
	line := monitorLine(now, addr, shownArgs(cmd, args))
	for m := range h.monitors {
		if !h.spend(now.Unix()) {
			return
		}
		m.show(line)
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

// subscribers returns how many subscribers each channel has, or each pattern.
func (h *eventHub) subscribers(patterns bool) map[string]int {
	h.mu.RLock()
	defer h.mu.RUnlock()
	counts := make(map[string]int)
	for t, n := range h.topics {
		if t.pattern == patterns {
			counts[t.name] = n
		}
	}
	return counts
}
