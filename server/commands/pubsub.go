package commands

import (
	"maps"
	"slices"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/resp"
	"github.com/weir-project/weir/server/service"
)

func pubsubCommands() []*command {
	const flags = "pubsub noscript loading stale no_multi"
	listen := "Channel `weir:denied:<algorithm>` carries the key of every denied decision, for example " +
		"`weir:denied:tokenbucket`. `weir:denied:policy:<policy>` carries the key of every check " +
		"that a limit of this policy denied (`PSUBSCRIBE weir:denied:policy:*`: of any policy). " +
		"`weir:lockout:policy:<policy>` and, for `RL.STRIKE`, `weir:lockout:strike` publish each strike that " +
		"begins the penalty of a last step, in JSON: `{\"policy\":\"lockout\",\"key\":\"42\",\"seconds\":900}`. A " +
		"delay or the penalty of an earlier step is no lock-out. A node publishes the decisions of its own clients. " +
		"A request that waits (`RL.WAIT`) publishes only its last denial. " +
		"Messages beyond 50000 a second for all listeners together are dropped (INFO counts them); a listener that " +
		"does not read is disconnected. A user with patterns of keys receives the messages about keys of its patterns."
	commands := []*command{
		{name: "SUBSCRIBE", arity: -2, syntax: "channel [channel ...]", summary: "Listen to denials",
			details: listen, flags: flags,
			run: func(s *Session, args [][]byte) { s.subscribe(args[1:], false) }},
		{name: "PSUBSCRIBE", arity: -2, syntax: "pattern [pattern ...]",
			summary: "Listen to channels that match a pattern", details: "SUBSCRIBE lists the channels.", flags: flags,
			run: func(s *Session, args [][]byte) { s.subscribe(args[1:], true) }},
		{name: "UNSUBSCRIBE", arity: -1, syntax: "[channel ...]", summary: "Stop listening to channels, or to all",
			flags: flags,
			run:   func(s *Session, args [][]byte) { s.unsubscribe(args[1:], false) }},
		{name: "PUNSUBSCRIBE", arity: -1, syntax: "[pattern ...]", summary: "Stop listening to patterns, or to all",
			flags: flags,
			run:   func(s *Session, args [][]byte) { s.unsubscribe(args[1:], true) }},
		{name: "PUBLISH", arity: 3, syntax: "channel message",
			summary: "Refused: channels carry the server's own events only", flags: "pubsub loading stale fast",
			run: func(s *Session, _ [][]byte) { s.fail(errPublish) }},
		pubsubCommand(),
	}
	for _, cmd := range commands {
		cmd.group = groupPubSub
		cmd.pubsub = cmd.has("no_multi")
	}
	return commands
}

func pubsubCommand() *command {
	return &command{
		name: "PUBSUB", arity: -2, flags: "pubsub loading stale", summary: "Describe the subscribers",
		subs: []*command{
			{name: "CHANNELS", arity: -2, syntax: "[pattern]", summary: "The channels someone listens to", bulky: true,
				run: func(s *Session, args [][]byte) {
					pattern := []byte("*")
					if len(args) > 2 {
						pattern = args[2]
					}
					if len(pattern) > maxPatternBytes {
						s.fail(errPatternLong)
						return
					}
					names := slices.Sorted(maps.Keys(s.srv.Events.Subscribers(false)))
					s.Strings(slices.DeleteFunc(
						names, func(n string) bool { return !engine.MatchGlob(pattern, []byte(n)) }))
				}},
			{name: "NUMSUB", arity: -2, syntax: "[channel ...]", summary: "How many listen to each channel",
				run: func(s *Session, args [][]byte) {
					counts := s.srv.Events.Subscribers(false)
					s.Array(2 * len(args[2:]))
					for _, name := range args[2:] {
						s.BulkBytes(name)
						s.Int(int64(counts[string(name)]))
					}
				}},
			{name: "NUMPAT", arity: 2, summary: "How many patterns are listened to", run: func(s *Session, _ [][]byte) {
				s.Int(int64(len(s.srv.Events.Subscribers(true))))
			}},
		},
	}
}

// topics are the subscriptions of one session, in the order of its requests.
type topics []service.Topic

// onlyTopics reports whether a RESP2 client is subscribed. Such a client may send only a few commands, because their
// replies could not be distinguished from messages.
func (s *Session) onlyTopics() bool { return s.about.Proto < 3 && len(s.topics) > 0 }

func (s *Session) subscribe(names [][]byte, pattern bool) {
	kind := kindOf("subscribe", pattern)
	for _, name := range names {
		if len(name) > maxPatternBytes {
			s.fail(errPatternLong)
			continue
		}
		t := service.Topic{Name: string(name), Pattern: pattern}
		if !slices.Contains(s.topics, t) {
			if len(s.topics) == service.MaxTopics {
				s.fail(errTooManyTopics)
				continue
			}
			s.topics = append(s.topics, t)
			s.srv.Events.Subscribe(s, t)
		}
		s.confirm(kind, name)
	}
	s.topicsChanged()
}

func (s *Session) unsubscribe(names [][]byte, pattern bool) {
	kind := kindOf("unsubscribe", pattern)
	if len(names) == 0 {
		for _, t := range s.topics {
			if t.Pattern == pattern {
				names = append(names, []byte(t.Name))
			}
		}
	}
	for _, name := range names {
		t := service.Topic{Name: string(name), Pattern: pattern}
		if i := slices.Index(s.topics, t); i >= 0 {
			s.topics = slices.Delete(s.topics, i, i+1)
			s.srv.Events.Unsubscribe(s, t)
		}
		s.confirm(kind, name)
	}
	if len(names) == 0 {
		s.confirm(kind, nil)
	}
	s.topicsChanged()
}

func kindOf(verb string, pattern bool) string {
	if pattern {
		return "p" + verb
	}
	return verb
}

// confirm answers one channel of a SUBSCRIBE or UNSUBSCRIBE with the current number of subscriptions.
func (s *Session) confirm(kind string, name []byte) {
	s.Push(3)
	s.Bulk(kind)
	if name == nil {
		s.Null()
	} else {
		s.BulkBytes(name)
	}
	s.Int(int64(len(s.topics)))
}

// topicsChanged updates the session and CLIENT LIST after a change of topics.
func (s *Session) topicsChanged() {
	patterns := 0
	for _, t := range s.topics {
		patterns += int(oneIf(t.Pattern))
	}
	s.about.Update(func(i *service.Client) { i.Subs, i.PatternSubs = len(s.topics)-patterns, patterns })
	s.refresh()
}

// dropTopics ends every subscription without a message to the client.
func (s *Session) dropTopics() {
	for _, t := range s.topics {
		s.srv.Events.Unsubscribe(s, t)
	}
	s.topics = nil
	s.topicsChanged()
}

func oneIf(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// MayHear reports whether the user of the session may use a key. The goroutine that publishes a message calls it.
func (s *Session) MayHear(key []byte) bool {
	u := s.hears.Load()
	return u == nil || u.MayUse(key)
}

// Deliver pushes a message in the protocol of the session. The goroutine that publishes the message calls it.
func (s *Session) Deliver(t service.Topic, channel string, payload []byte) {
	var w resp.Wire
	w.Speak(s.about.Protocol())
	if t.Pattern {
		w.Push(4)
		w.Bulk("pmessage")
		w.Bulk(t.Name)
	} else {
		w.Push(3)
		w.Bulk("message")
	}
	w.Bulk(channel)
	w.BulkBytes(payload)
	s.client.Push(w.Out)
}

// Show pushes a line that describes a command to a session with MONITOR.
func (s *Session) Show(line []byte) { s.client.Push(line) }
