package readindex

import (
	"encoding/binary"

	"github.com/hashicorp/raft"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/raftstore/internal/calls"
	"github.com/weir-project/weir/raftstore/internal/leadership"
	"github.com/weir-project/weir/raftstore/internal/timers"
	"github.com/weir-project/weir/raftstore/peer"
)

// readIndexQuestion is the question of a follower to the leader.
type readIndexQuestion struct {
	term    uint64 // the follower's term, read after the waiting reads arrived
	applied uint64 // the last entry that the follower has applied
	last    uint64 // the last entry of the follower's log
}

// readIndexAnswer is the leader's answer.
type readIndexAnswer struct {
	index, term uint64
	at          engine.Stamp
}

const (
	readIndexQuestionLen = 3 * 8
	readIndexAnswerLen   = 4 * 8
)

func (q readIndexQuestion) encode() []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, readIndexQuestionLen), q.term)
	b = binary.LittleEndian.AppendUint64(b, q.applied)
	return binary.LittleEndian.AppendUint64(b, q.last)
}

// decodeReadIndexQuestion ignores fields that a newer weir may append.
func decodeReadIndexQuestion(b []byte) (q readIndexQuestion, ok bool) {
	if len(b) < readIndexQuestionLen {
		return q, false
	}
	le := binary.LittleEndian
	return readIndexQuestion{le.Uint64(b), le.Uint64(b[8:]), le.Uint64(b[16:])}, true
}

func (a readIndexAnswer) encode() []byte {
	b := make([]byte, 0, readIndexAnswerLen)
	for _, v := range [...]uint64{a.index, a.term, uint64(a.at.NowNs), uint64(a.at.WallOffsetNs)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func decodeReadIndexAnswer(b []byte) (a readIndexAnswer, ok bool) {
	if len(b) < readIndexAnswerLen {
		return a, false
	}
	le := binary.LittleEndian
	a.index, a.term = le.Uint64(b), le.Uint64(b[8:])
	a.at = engine.Stamp{NowNs: int64(le.Uint64(b[16:])), WallOffsetNs: int64(le.Uint64(b[24:]))}
	return a, true
}

// Answer answers a follower's question with the last entry applied here. It succeeds only if this node leads and no
// later leader had been elected when the follower asked.
func (rd *Reads) Answer(from peer.Identity, payload []byte) (byte, []byte) {
	q, ok := decodeReadIndexQuestion(payload)
	r := rd.Leadership.Current.Load()
	switch {
	case !ok:
		return calls.Refused, []byte("a ReadIndex question is too short")
	case r == nil:
		return calls.NotLeader, nil
	}
	a := readIndexAnswer{term: r.Number, at: rd.Leadership.Stamp(r)}
	if err := rd.AwaitCommitted(); err != nil {
		return calls.Reply(nil, err)
	}
	var entryTerm uint64
	a.index, entryTerm = rd.FSM.LastEntry()
	rd.sendCommitIndex(from.NodeID, q, r, a.index, entryTerm)
	if !rd.confirmedBy(from.NodeID, q.term, r) {
		if err := rd.StillLeads(r); err != nil {
			return calls.Reply(nil, err)
		}
	}
	return calls.Answered, a.encode()
}

// confirmedBy reports whether the asking node and this node are a majority in r's term, which is possible with up to
// three voters. The question then proves the same as a quorum round: the follower was still in this term after the
// reads arrived.
func (rd *Reads) confirmedBy(id string, term uint64, r *leadership.Term) bool {
	if term != r.Number {
		return false
	}
	voters, yes := rd.Raft.Voters(), 0
	for _, voter := range voters {
		if voter == id || voter == rd.Self {
			yes++
		}
	}
	return yes > len(voters)/2 && rd.Raft.CurrentTerm() == r.Number
}

// sendCommitIndex tells a follower that an entry is committed, if the follower has the entry and has not applied it. It
// sends an AppendEntries without entries, as the Raft library does after its CommitTimeout. The library can send it
// sooner only with another entry, which costs each node a disk write.
//
// Raft allows this message at any time: the sender led in that term, and the entry is committed. A follower advances
// its commit index only up to an entry that its log has in the same term.
func (rd *Reads) sendCommitIndex(id string, q readIndexQuestion, r *leadership.Term, index, entryTerm uint64) {
	if q.applied >= index || q.last < index || rd.StuckFor() > rd.Heartbeat/timers.StuckFraction {
		return // a leader with a stuck disk must stay silent; see transport.Gate
	}
	s := rd.Raft.Server(id)
	if s == nil {
		return
	}
	select {
	case rd.commitMessages <- struct{}{}:
	default:
		return // the library's own message follows a little later
	}
	self := rd.Transport.EncodePeer(raft.ServerID(rd.Self), rd.Transport.LocalAddr())
	request := raft.AppendEntriesRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(rd.Self), Addr: self},
		Term:      r.Number, PrevLogEntry: index, PrevLogTerm: entryTerm, LeaderCommitIndex: index,
	}
	rd.Life.Tasks.Go(func() {
		defer func() { <-rd.commitMessages }()
		var response raft.AppendEntriesResponse
		if err := rd.Transport.AppendEntries(s.ID, s.Address, &request, &response); err != nil {
			rd.Log.Debug("could not tell a follower that an entry is committed", "node", id, "entry",
				index, "error", err)
		}
	})
}

// callReadIndex asks the leader once.
func (rd *Reads) callReadIndex(asker *peer.Client) (code byte, answer []byte, err error) {
	index, _ := rd.FSM.LastHistory()
	q := readIndexQuestion{term: rd.Raft.CurrentTerm(), applied: index, last: rd.Raft.LastIndex()}
	ctx, cancel := rd.callTimeout()
	defer cancel()
	return asker.Call(ctx, calls.ReadIndex, q.encode())
}

// askReadIndex returns the read index of the leader.
func (rd *Reads) askReadIndex(asker *peer.Client) (a readIndexAnswer, err error) {
	code, answer, err := rd.callReadIndex(asker)
	switch {
	case err != nil:
		return a, limiter.ErrTryAgain
	case code != calls.Answered:
		return a, limiter.ErrTryAgain // a read changes nothing, so an unknown outcome is harmless
	}
	a, ok := decodeReadIndexAnswer(answer)
	if !ok {
		return a, limiter.ErrTryAgain
	}
	return a, nil
}
