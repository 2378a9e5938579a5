package peer

import (
	"bufio"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// sharedPatience is how long a patient message waits for others. Only messages that are repeated several times in
	// each heartbeat timeout are patient.
	sharedPatience = 10 * time.Millisecond
	// maxSharedRequests bounds the requests of one group that are answered at the same time. A leader has a few in
	// flight for each member. A group that does not answer delays no other group.
	maxSharedRequests = 64
)

// The kinds of answers on a shared connection.
const (
	sharedAnswer  byte = iota // the payload is the answer
	sharedRefused             // the payload is the reason
)

// notYet ends the refusal of a group that answers no messages. Other nodes compare it.
const notYet = " yet"

var errBusy = errors.New("too many requests of this group wait")

// AnswerShared sets the handler for messages on shared connections. The handler must return soon after the port is
// closed. Until the call, the port refuses messages.
func (p *Port) AnswerShared(handle func(kind byte, body []byte, closed <-chan struct{}) ([]byte, error)) {
	p.answers.Store(&handle)
}

// serveShared answers the requests of a shared connection until it ends.
func (h *Hub) serveShared(conn *trackedConn) {
	var tasks sync.WaitGroup
	out, done := newOutbox(), make(chan struct{})
	bundles := make(slots, maxBundles)
	tasks.Go(func() { out.run(conn, sharedPatience, done) })
	defer tasks.Wait()
	defer close(done)
	defer conn.Close()
	r := bufio.NewReaderSize(conn, sharedBufferBytes)
	for {
		f, err := readFrame(r)
		if err != nil {
			return
		}
		patient := f.kind&patientBit != 0
		reply := func(kind byte, payload []byte) {
			if !out.add(frame{number: f.number, kind: kind, payload: payload}, patient) {
				conn.Close()
			}
		}
		if f.kind&^patientBit == bundleKind {
			if !bundles.begin(&tasks, func() { reply(sharedAnswer, h.answerBundle(conn, f.payload)) }) {
				reply(sharedRefused, []byte(errBusy.Error()))
			}
			continue
		}
		e, body, err := unseal(f.payload)
		if err != nil {
			return
		}
		p, err := h.beginShared(e.group)
		if err != nil {
			reply(sharedRefused, []byte(err.Error()))
			continue
		}
		answer := func() { reply(p.outcome(conn, e, f.kind&^patientBit, body)) }
		if p.answersAtOnce(f.kind&^patientBit, body) {
			answer()
		} else {
			tasks.Go(answer)
		}
	}
}

// outcome answers a request of a port that beginShared has returned. It returns the kind and the payload of the answer.
func (p *Port) outcome(conn *trackedConn, e envelope, kind byte, body []byte) (byte, []byte) {
	defer p.endShared()
	answer, err := p.answerShared(conn, e, kind, body)
	if err != nil {
		return sharedRefused, []byte(err.Error())
	}
	return sharedAnswer, answer
}

// beginShared returns the port of a group and adds a task to it, which endShared ends.
func (h *Hub) beginShared(group uint16) (*Port, error) {
	h.groups.Lock()
	p := h.ports[group]
	h.groups.Unlock()
	if p == nil || !p.begin() {
		return nil, fmt.Errorf("%w %d", ErrNoGroup, group)
	}
	if p.requests.Add(1) > maxSharedRequests {
		p.endShared()
		return nil, errBusy
	}
	return p, nil
}

func (p *Port) endShared() {
	p.requests.Add(-1)
	p.tasks.Done()
}

// answerShared checks both nodes of a request as a handshake does, and answers the request.
func (p *Port) answerShared(conn *trackedConn, e envelope, kind byte, body []byte) ([]byte, error) {
	if self := p.config.Self(); e.to != self.NodeID {
		return nil, fmt.Errorf("%w: this node is %q, not %q", ErrWrongID, self.NodeID, e.to)
	}
	if err := conn.vouched(e.from.NodeID); err != nil {
		return nil, err
	}
	if kind == callKind {
		return p.answerCall(e.from, body)
	}
	if err := p.judge(RaftService, e.from); err != nil {
		return nil, err
	}
	handle := p.answers.Load()
	if handle == nil {
		return nil, fmt.Errorf("%w %d%s", ErrNoGroup, p.group, notYet)
	}
	return (*handle)(kind, body, p.done)
}
