package transport

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/peer"
)

// Carrier is the transport of a group: Shared, or in a test another one.
type Carrier interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// Shared sends the short messages of a group over the connection that all groups of two hosts share. Images and long
// AppendEntries have streams of their own, so that they delay no other group. If the other host is too old, all
// messages use streams. The transport for streams is opened when the first stream is needed (streams.go).
type Shared struct {
	port    *peer.Port
	addr    raft.ServerAddress
	timeout time.Duration
	rpcs    chan raft.RPC
	done    chan struct{}

	open    func() *raft.NetworkTransport
	mu      sync.Mutex
	opened  *raft.NetworkTransport // nil: no stream was needed yet
	closed  bool
	passing sync.WaitGroup

	transferred atomic.Pointer[time.Time] // when a leader last sent this node a TimeoutNow
}

var _ Carrier = (*Shared)(nil)

// maxSharedEntries is the size of the entries above which an AppendEntries uses a stream.
const maxSharedEntries = 512 << 10

// The kinds of messages.
const (
	appendEntries byte = 'a'
	requestVote   byte = 'v'
	preVote       byte = 'p'
	timeoutNow    byte = 't'
)

// NewShared returns a transport over a port. It uses streams for what it does not send over the shared connection, and
// open opens the transport for them, at most once. Other nodes reach this node at addr. timeout bounds an exchange.
func NewShared(open func() *raft.NetworkTransport, port *peer.Port, addr string, timeout time.Duration) *Shared {
	s := &Shared{
		open: open, port: port, addr: raft.ServerAddress(addr), timeout: timeout,
		rpcs: make(chan raft.RPC), done: make(chan struct{}),
	}
	port.AnswerShared(s.answer)
	port.OnStream(func() { _, _ = s.streams() })
	return s
}

// Consumer implements raft.Transport.
func (s *Shared) Consumer() <-chan raft.RPC { return s.rpcs }

// LocalAddr implements raft.Transport.
func (s *Shared) LocalAddr() raft.ServerAddress { return s.addr }

// EncodePeer implements raft.Transport.
func (s *Shared) EncodePeer(_ raft.ServerID, at raft.ServerAddress) []byte { return []byte(at) }

// DecodePeer implements raft.Transport.
func (s *Shared) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler ignores the handler; see Transport.
func (s *Shared) SetHeartbeatHandler(func(raft.RPC)) {}

// AppendEntries implements raft.Transport.
func (s *Shared) AppendEntries(id raft.ServerID, at raft.ServerAddress, args *raft.AppendEntriesRequest,
	resp *raft.AppendEntriesResponse) error {
	size := 0
	for _, e := range args.Entries {
		size += len(e.Data)
	}
	if size > maxSharedEntries {
		return onStream(s, (*raft.NetworkTransport).AppendEntries, id, at, args, resp)
	}
	err := s.ask(id, at, appendEntries, heartbeat(args), args, resp)
	return orStream(s, err, (*raft.NetworkTransport).AppendEntries, id, at, args, resp)
}

// heartbeat reports whether a message is one that the library repeats ten times in each heartbeat timeout.
func heartbeat(args *raft.AppendEntriesRequest) bool {
	return args.PrevLogEntry == 0 && args.LeaderCommitIndex == 0 && len(args.Entries) == 0
}

// RequestVote implements raft.Transport.
func (s *Shared) RequestVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestVoteRequest,
	resp *raft.RequestVoteResponse) error {
	err := s.ask(id, at, requestVote, false, args, resp)
	return orStream(s, err, (*raft.NetworkTransport).RequestVote, id, at, args, resp)
}

// RequestPreVote implements raft.WithPreVote.
func (s *Shared) RequestPreVote(id raft.ServerID, at raft.ServerAddress, args *raft.RequestPreVoteRequest,
	resp *raft.RequestPreVoteResponse) error {
	err := s.ask(id, at, preVote, false, args, resp)
	return orStream(s, err, (*raft.NetworkTransport).RequestPreVote, id, at, args, resp)
}

// TimeoutNow implements raft.Transport.
func (s *Shared) TimeoutNow(id raft.ServerID, at raft.ServerAddress, args *raft.TimeoutNowRequest,
	resp *raft.TimeoutNowResponse) error {
	err := s.ask(id, at, timeoutNow, false, args, resp)
	return orStream(s, err, (*raft.NetworkTransport).TimeoutNow, id, at, args, resp)
}

// ask sends a message and decodes the answer.
func (s *Shared) ask(id raft.ServerID, at raft.ServerAddress, kind byte, patient bool, args, resp any) error {
	body, err := encode(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	answer, err := s.port.AskShared(ctx, peer.Message{
		Addr: string(at), To: string(id), Kind: kind, Patient: patient, Body: body,
	})
	if err != nil {
		return err
	}
	return decode(answer, resp)
}

// answer passes a message from another node to the library and encodes its answer.
func (s *Shared) answer(kind byte, body []byte, closed <-chan struct{}) ([]byte, error) {
	command, err := commandOf(kind)
	if err != nil {
		return nil, err
	}
	if err := decode(body, command); err != nil {
		return nil, err
	}
	s.note(command)
	answers := make(chan raft.RPCResponse, 1)
	select {
	case s.rpcs <- raft.RPC{Command: command, RespChan: answers}:
	case <-closed:
		return nil, raft.ErrTransportShutdown
	case <-s.done:
		return nil, raft.ErrTransportShutdown
	}
	select {
	case a := <-answers:
		if a.Error != nil {
			return nil, a.Error
		}
		return encode(a.Response)
	case <-closed:
	case <-s.done:
	}
	return nil, raft.ErrTransportShutdown
}

// commandOf returns an empty message of a kind.
func commandOf(kind byte) (any, error) {
	switch kind {
	case appendEntries:
		return new(raft.AppendEntriesRequest), nil
	case requestVote:
		return new(raft.RequestVoteRequest), nil
	case preVote:
		return new(raft.RequestPreVoteRequest), nil
	case timeoutNow:
		return new(raft.TimeoutNowRequest), nil
	}
	return nil, fmt.Errorf("this version of weir does not know messages of kind %q", kind)
}
