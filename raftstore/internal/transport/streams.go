package transport

import (
	"errors"
	"io"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/raftstore/peer"
)

// streams returns the transport for streams. It opens the transport at the first call, because the transport has
// goroutines of its own, and most groups need no stream for a long time.
func (s *Shared) streams() (*raft.NetworkTransport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, raft.ErrTransportShutdown
	case s.opened == nil:
		s.opened = s.open()
		from := s.opened.Consumer()
		s.passing.Go(func() { s.passOn(from) })
	}
	return s.opened, nil
}

// passOn passes the messages that arrive on streams to the consumer.
func (s *Shared) passOn(from <-chan raft.RPC) {
	for {
		select {
		case rpc := <-from:
			s.note(rpc.Command)
			image, ok := rpc.Command.(*raft.InstallSnapshotRequest)
			if ok && !s.pass(heartbeatOf(image)) || !s.pass(rpc) {
				return
			}
		case <-s.done:
			return
		}
	}
}

// pass passes a message to the consumer. It returns false if the transport is closed before.
func (s *Shared) pass(rpc raft.RPC) bool {
	select {
	case s.rpcs <- rpc:
		return true
	case <-s.done:
		return false
	}
}

// heartbeatOf returns a heartbeat of the leader that sends an image. In the library a candidate that gets an image of
// its own term knows the leader from then on, and yet stays a candidate. If the leader ends before its next heartbeat,
// the candidate refuses all pre-votes, without end, because it knows a leader. A heartbeat before the image makes it a
// follower, as Raft demands (section 5.2). Seen in hashicorp/raft 1.7.3 and 1.8.0.
func heartbeatOf(image *raft.InstallSnapshotRequest) raft.RPC {
	return raft.RPC{
		Command:  &raft.AppendEntriesRequest{RPCHeader: image.RPCHeader, Term: image.Term},
		RespChan: make(chan raft.RPCResponse, 1),
	}
}

// Close implements raft.WithClose.
func (s *Shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	close(s.done)
	s.passing.Wait()
	if s.opened == nil {
		return nil
	}
	return s.opened.Close()
}

// InstallSnapshot implements raft.Transport.
func (s *Shared) InstallSnapshot(id raft.ServerID, at raft.ServerAddress, args *raft.InstallSnapshotRequest,
	resp *raft.InstallSnapshotResponse, data io.Reader) error {
	t, err := s.streams()
	if err != nil {
		return err
	}
	return t.InstallSnapshot(id, at, args, resp, data)
}

// AppendEntriesPipeline implements raft.Transport. The library then sends one message after the other.
func (s *Shared) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// send sends a message on a stream.
type send[Args, Resp any] func(*raft.NetworkTransport, raft.ServerID, raft.ServerAddress, Args, Resp) error

func onStream[Args, Resp any](s *Shared, on send[Args, Resp], id raft.ServerID, at raft.ServerAddress, args Args,
	resp Resp) error {
	t, err := s.streams()
	if err != nil {
		return err
	}
	return on(t, id, at, args, resp)
}

// orStream sends a message on a stream if err is peer.ErrNotShared. Otherwise it returns err.
func orStream[Args, Resp any](s *Shared, err error, on send[Args, Resp], id raft.ServerID, at raft.ServerAddress,
	args Args, resp Resp) error {
	if errors.Is(err, peer.ErrNotShared) {
		return onStream(s, on, id, at, args, resp)
	}
	return err
}
