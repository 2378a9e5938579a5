package server

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"

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

// eventHub hands events to the sessions that listen. While nobody does, deciding
// pays no more than a load of listeners.
type eventHub struct {
	listeners atomic.Int32  // topics subscribed to, over all sessions
	attention *atomic.Int32 // see serverState; monitors count in it
	dropped   atomic.Int64
	second    atomic.Int64 // of which sent counts
	sent      atomic.Int64

	mu       sync.RWMutex
	denials  [engine.Scripted + 1]*denialChannel
	lockouts *denialChannel            // of RL.STRIKE
	policies map[string]*denialChannel // of policies that denied something or locked somebody out lately
	all      map[subscription]struct{}
	topics   map[topic]int // subscribers of each
	monitors map[*session]struct{}
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
	s     *session
	topic topic
}

func newEventHub(attention *atomic.Int32) *eventHub {
	h := &eventHub{attention: attention, policies: make(map[string]*denialChannel), all: make(map[subscription]struct{}),
		topics: make(map[topic]int), monitors: make(map[*session]struct{})}
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

// subscribe adds a topic s does not have yet.
func (h *eventHub) subscribe(s *session, t topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topics[t]++
	h.listeners.Add(1)
	sub := subscription{s, t}
	h.all[sub] = struct{}{}
	h.eachChannel(func(ch *denialChannel) { ch.admit(sub) })
}

// unsubscribe takes away a topic s has.
func (h *eventHub) unsubscribe(s *session, t topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topics[t]--; h.topics[t] == 0 {
		delete(h.topics, t)
	}
	h.listeners.Add(-1)
	sub := subscription{s, t}
	delete(h.all, sub)
	h.eachChannel(func(ch *denialChannel) { delete(ch.heard, sub) })
}

// monitor begins or ends MONITOR for s.
func (h *eventHub) monitor(s *session, on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, is := h.monitors[s]; is == on {
		return
	}
	if on {
		h.monitors[s] = struct{}{}
		h.attention.Add(1)
	} else {
		delete(h.monitors, s)
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

// publish never waits: a listener that does not keep up is cut by Push, and the
// budget ends the work of a flood.
func (h *eventHub) publish(ch *denialChannel, key []byte) {
	second := time.Now().Unix()
	for sub := range ch.heard {
		if !h.spend(second) {
			return
		}
		sub.s.client.Push(sub.message(ch.name, key))
	}
}

// message is written in the subscriber's protocol, on another goroutine.
func (sub subscription) message(channel string, payload []byte) []byte {
	proto := sub.s.about.protocol()
	var buf []byte
	if sub.topic.pattern {
		buf = aggregate(buf, proto, '>', 4, 4)
		buf = redcon.AppendBulkString(buf, "pmessage")
		buf = redcon.AppendBulkString(buf, sub.topic.name)
	} else {
		buf = aggregate(buf, proto, '>', 3, 3)
		buf = redcon.AppendBulkString(buf, "message")
	}
	buf = redcon.AppendBulkString(buf, channel)
	return redcon.AppendBulk(buf, payload)
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
func (h *eventHub) showCommand(addr string, cmd *command, args [][]byte) {
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
		m.client.Push(line)
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
