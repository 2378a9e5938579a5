package service

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-project/weir/engine"
)

const (
	// MaxTopics bounds the channels and patterns of one client. A client that needs more channels subscribes to a
	// pattern.
	MaxTopics = 128
	// maxEventsPerSecond bounds the messages to subscribers and monitors per second, so that listeners do not slow
	// decisions. At about 1 µs each, messages take at most 5 % of a core. Events drops and counts the rest.
	maxEventsPerSecond = 50_000
	// deniedPrefix begins the channel name of every denial. The algorithm follows, or for a check policyPrefix and the
	// name of its policy.
	deniedPrefix = "weir:denied:"
	// lockoutPrefix begins the channel name of every lock-out. The rest is as for denials.
	lockoutPrefix = "weir:lockout:"
	policyPrefix  = "policy:"
	// SwitchChannel and ReplicaChannel are the channels on which Redis' Sentinel announces a new primary, and its
	// replicas.
	SwitchChannel  = "+switch-master"
	ReplicaChannel = "+slave"
	// MaxPolicyChannels allows two channels for each possible policy.
	MaxPolicyChannels = 2 * engine.MaxPolicies
)

// Events publishes events to listeners. Without listeners a denial costs one atomic load.
type Events struct {
	Listeners atomic.Int32  // subscriptions of all listeners
	slowPath  *atomic.Int32 // Service.SlowPath; each monitor adds 1
	Dropped   atomic.Int64
	second    atomic.Int64 // the Unix second in which sent is counted
	sent      atomic.Int64 // messages sent in that second

	mu       sync.RWMutex
	denials  [engine.Scripted + 1]*eventChannel
	lockouts *eventChannel            // of RL.STRIKE
	switches [2]*eventChannel         // SwitchChannel and ReplicaChannel
	Policies map[string]*eventChannel // by name; of policies that recently denied or locked out
	All      map[subscription]struct{}
	topics   map[Topic]int // subscribers of each
	monitors map[Listener]struct{}
}

// Listener receives events. Its methods may be called from any goroutine and never block. A listener that does not keep
// up is disconnected.
type Listener interface {
	// MayHear reports whether the listener may learn what happened to a key.
	MayHear(key []byte) bool
	// Deliver passes a message on a channel that matches the subscription t.
	Deliver(t Topic, channel string, payload []byte)
	// Show passes a command as MONITOR writes it.
	Show(line []byte)
}

// Topic is a subject of a subscription: a channel or a pattern of channels.
type Topic struct {
	Name    string
	Pattern bool
}

// eventChannel holds the subscriptions to denials or lock-outs of one algorithm or policy, or to changes of the leader,
// so that an event compares no names.
type eventChannel struct {
	name  string
	heard map[subscription]struct{}
}

type subscription struct {
	listener Listener
	topic    Topic
}

func newEvents(slowPath *atomic.Int32) *Events {
	h := &Events{slowPath: slowPath, Policies: make(map[string]*eventChannel), All: make(map[subscription]struct{}),
		topics: make(map[Topic]int), monitors: make(map[Listener]struct{})}
	for a := range h.denials {
		h.denials[a] = h.channel(deniedPrefix + engine.Algorithm(a).String())
	}
	h.lockouts = h.channel(lockoutPrefix + engine.Strike.String())
	h.switches = [...]*eventChannel{h.channel(SwitchChannel), h.channel(ReplicaChannel)}
	return h
}

// channel returns a new channel with the current matching subscriptions.
func (h *Events) channel(name string) *eventChannel {
	ch := &eventChannel{name, make(map[subscription]struct{})}
	for sub := range h.All {
		ch.admit(sub)
	}
	return ch
}

// admit adds a subscription if it matches this channel.
func (ch *eventChannel) admit(sub subscription) {
	if sub.topic.matches(ch.name) {
		ch.heard[sub] = struct{}{}
	}
}

// eachChannel visits all existing channels.
func (h *Events) eachChannel(visit func(*eventChannel)) {
	for _, ch := range h.denials {
		visit(ch)
	}
	visit(h.lockouts)
	for _, ch := range h.switches {
		visit(ch)
	}
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

// Subscribe adds a topic to which l is not subscribed.
func (h *Events) Subscribe(l Listener, t Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.topics[t]++
	h.Listeners.Add(1)
	sub := subscription{l, t}
	h.All[sub] = struct{}{}
	h.eachChannel(func(ch *eventChannel) { ch.admit(sub) })
}

// Unsubscribe removes a topic to which l is subscribed.
func (h *Events) Unsubscribe(l Listener, t Topic) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.topics[t]--; h.topics[t] == 0 {
		delete(h.topics, t)
	}
	h.Listeners.Add(-1)
	sub := subscription{l, t}
	delete(h.All, sub)
	h.eachChannel(func(ch *eventChannel) { delete(ch.heard, sub) })
}

// Monitor starts or ends MONITOR for l.
func (h *Events) Monitor(l Listener, on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, is := h.monitors[l]; is == on {
		return
	}
	if on {
		h.monitors[l] = struct{}{}
		h.slowPath.Add(1)
	} else {
		delete(h.monitors, l)
		h.slowPath.Add(-1)
	}
}

// Denied publishes a denial if there are listeners.
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
	h.publish(ch, key, key)
}

// policyChannel returns or creates the channel of a policy. At MaxPolicyChannels it first removes all channels,
// because deleted policies still have channels.
func (h *Events) policyChannel(prefix string, policy []byte) *eventChannel {
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

// publish sends a message about a key to the listeners that may hear of the key. It never blocks. A listener that does
// not keep up is disconnected, and the message budget stops a flood.
func (h *Events) publish(ch *eventChannel, key, message []byte) {
	second := time.Now().Unix()
	for sub := range ch.heard {
		if !sub.listener.MayHear(key) {
			continue
		}
		if !h.spend(second) {
			return
		}
		sub.listener.Deliver(sub.topic, ch.name, message)
	}
}

// Switched publishes that a cluster has another primary, to SwitchChannel, and then its replicas to ReplicaChannel, a
// message each. Every subscriber may hear it.
func (h *Events) Switched(primary string, replicas []string) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	second := time.Now().Unix()
	for i, messages := range [][]string{{primary}, replicas} {
		for sub := range h.switches[i].heard {
			for _, message := range messages {
				if !h.spend(second) {
					return
				}
				sub.listener.Deliver(sub.topic, h.switches[i].name, []byte(message))
			}
		}
	}
}

// spend takes one message from the budget of the second now. It returns false if the budget is used up.
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

// ShowCommand shows a command of a client in a database to every monitor.
func (h *Events) ShowCommand(addr string, database int, cmd *Command, args [][]byte) {
	if h.slowPath.Load() == 0 {
		return
	}
	h.mu.RLock()
	defer h.mu.RUnlock()
	if len(h.monitors) == 0 {
		return
	}
	now := time.Now()
	line := monitorLine(now, addr, database, ShownArgs(cmd, args))
	for m := range h.monitors {
		if !h.spend(now.Unix()) {
			return
		}
		m.Show(line)
	}
}

// monitorLine formats +seconds.micros [db addr] "arg" "arg" as Redis does.
func monitorLine(now time.Time, addr string, database int, args []string) []byte {
	micros := strconv.Itoa(1_000_000 + now.Nanosecond()/1000)
	line := append([]byte("+"), strconv.FormatInt(now.Unix(), 10)...)
	line = append(line, "."+micros[1:]+" ["+strconv.Itoa(database)+" "+addr+"]"...)
	for _, a := range args {
		line = append(line, ' ')
		line = strconv.AppendQuoteToASCII(line, a)
	}
	return append(line, "\r\n"...)
}

// Subscribers returns the number of subscribers of each channel, or of each pattern.
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
