package policyfile

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-project/weir/engine"
)

// maxStepEvents bounds the events that a step may expect.
const maxStepEvents = 100

// wantedEvent is an expected event: the values of the fields that the test names, in normal form.
type wantedEvent map[string]string

// eventFields are the fields of an event that a test may name, in the order in which failures print them.
var eventFields = []struct {
	name   string
	number bool
	got    func(e *engine.Event) string
}{
	{"kind", false, func(e *engine.Event) string { return e.Kind.String() }},
	{"policy", false, func(e *engine.Event) string { return e.Policy }},
	{"key", false, func(e *engine.Event) string { return e.Key }},
	{"id", false, func(e *engine.Event) string { return e.ID }},
	{"share", true, func(e *engine.Event) string { return strconv.FormatInt(e.Share, 10) }},
	{"amount", true, func(e *engine.Event) string { return strconv.FormatInt(e.Amount, 10) }},
	{"used", true, func(e *engine.Event) string { return strconv.FormatInt(e.Used, 10) }},
	{"limit", true, func(e *engine.Event) string { return strconv.FormatInt(e.Limit, 10) }},
}

// readEvents reads the field events of a step: the events that its commands write, in their order.
func (s *TestStep) readEvents(list *yaml.Node) error {
	if list.Kind != yaml.SequenceNode || len(list.Content) > maxStepEvents {
		return at(list, "events is a list of at most %d, like '[{kind: threshold, key: acme, share: 80}]'",
			maxStepEvents)
	}
	s.eventsLine, s.Events = list.Line, []wantedEvent{}
	for _, n := range list.Content {
		e := wantedEvent{}
		readers := map[string]func(*yaml.Node) error{}
		for _, f := range eventFields {
			readers[f.name] = func(n *yaml.Node) (err error) {
				if e[f.name], err = scalar(n); err == nil && f.number {
					units, bad := strconv.ParseInt(n.Value, 10, 64)
					if e[f.name] = strconv.FormatInt(units, 10); bad != nil {
						err = at(n, "%s must be a whole number; got %q", f.name, n.Value)
					}
				}
				return err
			}
		}
		if err := fields(n, "an event", readers); err != nil {
			return err
		}
		if kinds := eventKinds(); !strings.Contains(" "+kinds+" ", " "+e["kind"]+" ") {
			return at(n, "an event needs a kind, one of %s; got %q", kinds, e["kind"])
		}
		s.Events = append(s.Events, e)
	}
	return nil
}

// eventKinds returns the names of all kinds of events.
func eventKinds() string {
	var names []string
	for k := engine.EventThreshold; k.String() != ""; k++ {
		names = append(names, k.String())
	}
	return strings.Join(names, " ")
}

// differEvents returns a Failure unless the step wrote the events that it expects.
func (s *TestStep) differEvents(o *outcome) []Failure {
	same := len(o.events) == len(s.Events)
	for i := 0; same && i < len(s.Events); i++ {
		for _, f := range eventFields {
			want, named := s.Events[i][f.name]
			same = same && (!named || want == f.got(&o.events[i]))
		}
	}
	if same {
		return nil
	}
	want, got := make([]string, len(s.Events)), make([]string, len(o.events))
	for i, e := range s.Events {
		want[i] = eventText(func(field int) string { return e[eventFields[field].name] })
	}
	for i := range o.events {
		got[i] = eventText(func(field int) string { return eventFields[field].got(&o.events[i]) })
	}
	if o.moreEvents > 0 {
		got = append(got, fmt.Sprintf("and %d more", o.moreEvents))
	}
	return []Failure{{s.eventsLine, s.String(), "events " + listOf(want), listOf(got)}}
}

// eventText returns an event in one line, without empty fields.
func eventText(of func(field int) string) string {
	var words []string
	for i, f := range eventFields {
		if value := of(i); value != "" {
			words = append(words, f.name+": "+value)
		}
	}
	return "{" + strings.Join(words, ", ") + "}"
}

func listOf(all []string) string { return "[" + strings.Join(all, ", ") + "]" }
