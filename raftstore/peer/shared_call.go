package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// callHandler answers the calls of a group.
type callHandler struct {
	handle Handler
	atOnce []byte
}

// AnswerCalls sets the handler for calls on shared connections. See ServeCalls for atOnce. Until the call, the port
// refuses them.
func (p *Port) AnswerCalls(handle Handler, atOnce ...byte) {
	p.calls.Store(&callHandler{handle, atOnce})
}

// answersAtOnce reports whether the goroutine that reads a connection answers a message.
func (p *Port) answersAtOnce(kind byte, body []byte) bool {
	c := p.calls.Load()
	return kind == callKind && c != nil && len(body) > 0 && slices.Contains(c.atOnce, body[0])
}

// answerCall checks a call as the handshake of a connection for calls does, and answers it.
func (p *Port) answerCall(from Identity, body []byte) ([]byte, error) {
	if len(body) == 0 {
		return nil, errEnvelope
	}
	if err := p.judge(CallService, from); err != nil {
		return nil, err
	}
	c := p.calls.Load()
	if c == nil {
		return nil, fmt.Errorf("%w %d%s", ErrNoGroup, p.group, notYet)
	}
	status, answer := c.handle(from, body[0], body[1:])
	return append([]byte{status}, answer...), nil
}

// bundleLink returns the shared connection to a host, or ErrNotShared if the host does not know calls on it.
func (p *Port) bundleLink(ctx context.Context, addr string) (*sharedLink, error) {
	l, err := p.sharedLink(ctx, addr)
	if err == nil && l.conn.sharedVersion < bundleVersion {
		return nil, ErrNotShared
	}
	return l, err
}

// callShared is Client.Call over the shared connection. Its error can also be ErrNotShared.
func (p *Port) callShared(ctx context.Context, addr, to string, method byte, payload []byte) (byte, []byte, error) {
	l, err := p.bundleLink(ctx, addr)
	if errors.Is(err, ErrNotShared) {
		return 0, nil, err
	}
	if err == nil {
		err = l.conn.vouched(to)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	f := frame{kind: callKind, payload: p.seal(to, append([]byte{method}, payload...))}
	if len(f.payload) > MaxPayload {
		return 0, nil, ErrNotShared
	}
	f, err = l.ask(ctx, p.done, f, false)
	switch {
	case errors.Is(err, ErrNotSent) || errors.Is(err, ErrNoAnswer):
		return 0, nil, err
	case err != nil:
		return 0, nil, fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	return callAnswer(f.kind, f.payload)
}

// callAnswer returns the status and the payload of an answer. A call that was refused was not carried out.
func callAnswer(kind byte, payload []byte) (byte, []byte, error) {
	if kind != sharedAnswer || len(payload) == 0 {
		return 0, nil, fmt.Errorf("%w: %w: %s", ErrNotSent, ErrRefused, payload)
	}
	return payload[0], payload[1:], nil
}
