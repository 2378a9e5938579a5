package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The calls of a group can use the shared connection of two hosts. Such a call is a message of the kind callKind, with
// the method before the payload. Its answer has the status before the payload.
//
// The calls of several groups to one host can also share one message, a bundle. The message and its answer are lists,
// in the same order, of parts with their lengths:
//
//	length(4) group ... receiver-id callKind method payload    a call in its envelope
//	length(4) sharedAnswer-or-sharedRefused status payload     an answer
const (
	callKind   byte = 'c'
	bundleKind byte = 'b'
	// bundleVersion is the first sharedVersion with calls and bundles.
	bundleVersion = 2
	// maxBundle bounds the calls in a bundle. It is the greatest number of groups of a cluster.
	maxBundle = 1024
	// maxBundles bounds the bundles of a connection that are answered at the same time. A host asks one after the
	// other.
	maxBundles = 4
	// bundlePatience is how long a bundle waits for the answer of a group. A group that hangs gets no answer into the
	// bundle, and delays the answers of the other groups by this time at most.
	bundlePatience = 100 * time.Millisecond
)

var errLate = errors.New("the group did not answer in time")

// Question is a call of a group to its node on another host.
type Question struct {
	Port    *Port
	To      string // the id of the node
	Method  byte
	Payload []byte
}

// Answer is the answer to a Question.
type Answer struct {
	Status  byte
	Payload []byte
	Err     error // the group gave no answer
}

// AskTogether calls the nodes of several groups on the host at an address with one message, and returns their answers
// in the order of the questions. The methods must not change anything, because a group that answers late has carried
// out its call. The caller may retry each call with a Client if the error is ErrNotShared.
func AskTogether(ctx context.Context, addr string, questions []Question) ([]Answer, error) {
	if len(questions) > maxBundle {
		return nil, ErrNotShared
	}
	l, err := questions[0].Port.bundleLink(ctx, addr)
	if err != nil {
		return nil, err
	}
	answers := make([]Answer, len(questions))
	var asked []*Answer
	var b []byte
	for i, q := range questions {
		if answers[i].Err = l.conn.vouched(q.To); answers[i].Err != nil {
			continue
		}
		asked = append(asked, &answers[i])
		b = appendPart(b, q.Port.seal(q.To, append([]byte{callKind, q.Method}, q.Payload...)))
	}
	if len(b) > MaxPayload {
		return nil, ErrNotShared
	}
	f, err := l.ask(ctx, nil, frame{kind: bundleKind | patientBit, payload: b}, true)
	if err != nil {
		return nil, err
	}
	parts, err := readParts(f.payload)
	if f.kind != sharedAnswer || err != nil || len(parts) != len(asked) {
		return nil, fmt.Errorf("%w: %s", ErrRefused, f.payload)
	}
	for i, part := range parts {
		asked[i].Status, asked[i].Payload, asked[i].Err = callAnswer(part[0], part[1:])
	}
	return answers, nil
}

// answerBundle answers the calls of a bundle side by side, and returns their answers.
func (h *Hub) answerBundle(conn *trackedConn, payload []byte) []byte {
	type result struct {
		at     int
		answer []byte
	}
	parts, err := readParts(payload)
	if err != nil {
		return nil
	}
	answers := make([][]byte, len(parts))
	results := make(chan result, len(parts)) // a late result waits for nobody
	for i, part := range parts {
		answers[i] = append([]byte{sharedRefused}, errLate.Error()...)
		h.answerPart(conn, part, func(kind byte, payload []byte) {
			results <- result{i, append([]byte{kind}, payload...)}
		})
	}
	late := time.After(h.bundlePatience)
	for range parts {
		select {
		case r := <-results:
			answers[r.at] = r.answer
			continue
		case <-late:
		case <-h.done:
		}
		break
	}
	var b []byte
	for _, answer := range answers {
		b = appendPart(b, answer)
	}
	return b
}

// answerPart answers one call of a bundle in a goroutine of its group.
func (h *Hub) answerPart(conn *trackedConn, part []byte, reply func(kind byte, payload []byte)) {
	e, body, err := unseal(part)
	if err == nil && (len(body) == 0 || body[0] != callKind) {
		err = errEnvelope
	}
	var p *Port
	if err == nil {
		p, err = h.beginShared(e.group)
	}
	if err != nil {
		reply(sharedRefused, []byte(err.Error()))
		return
	}
	go func() { reply(p.outcome(conn, e, callKind, body[1:])) }()
}

func appendPart(b, part []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
}

// readParts returns the parts of a bundle. No part is empty.
func readParts(b []byte) (parts [][]byte, err error) {
	for len(b) > 0 {
		if len(b) < 4 || len(parts) == maxBundle {
			return nil, errEnvelope
		}
		n := binary.LittleEndian.Uint32(b)
		if b = b[4:]; n == 0 || uint64(n) > uint64(len(b)) {
			return nil, errEnvelope
		}
		parts, b = append(parts, b[:n:n]), b[n:]
	}
	return parts, nil
}

// slots bounds the tasks that run at the same time.
type slots chan struct{}

// begin runs act as a task if there is a free slot, and otherwise reports false.
func (s slots) begin(tasks *sync.WaitGroup, act func()) bool {
	select {
	case s <- struct{}{}:
	default:
		return false
	}
	tasks.Go(func() {
		defer func() { <-s }()
		act()
	})
	return true
}
