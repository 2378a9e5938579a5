package commands

import (
	"crypto/rand"
	"strconv"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

// From the arguments of a command on holds to its operation.

func planReserve(s *Session, args [][]byte) error {
	op, err := s.op(engine.OpReserve, args[2])
	if err != nil {
		return err
	}
	if err := arg.CheckText("policy", args[1], engine.MaxPolicyLen); err != nil {
		return err
	}
	op.Text = args[1]
	if op.Cost, err = arg.Units("n", args[3], 1, engine.MaxUnits); err != nil {
		return err
	}
	if op.TTLNs, err = arg.Span("ttl", args[4]); err != nil {
		return err
	}
	rest := args[5:]
	if len(rest) > 0 && arg.Is(rest[0], "AND") {
		if rest, err = s.morePairs(op, rest[1:]); err != nil {
			return err
		}
		if len(op.Also) == 0 {
			return resp.Error("ERR AND needs a policy and a key")
		}
	}
	if op.HoldBytes() > engine.MaxHoldBytes {
		return resp.Error("ERR the policies and keys of a hold must be at most " + strconv.Itoa(engine.MaxHoldBytes) +
			" bytes together, four for each pair included, not " + strconv.Itoa(op.HoldBytes()))
	}
	if _, _, err = arg.Options(op, rest, arg.Priority|arg.From|arg.ID); err == nil && op.ID == nil {
		// Made here, before the request is replicated: every node knows the hold by it.
		op.ID = []byte(rand.Text())
	}
	return err
}

func planCommit(s *Session, args [][]byte) (err error) {
	op, err := s.holdOp(engine.OpCommit, args[1])
	if err == nil {
		op.Cost, err = arg.Units("actual", args[2], 0, engine.MaxUnits)
	}
	return err
}

func planCancel(s *Session, args [][]byte) error {
	_, err := s.holdOp(engine.OpCancel, args[1])
	return err
}

// holdOp begins an operation on a hold.
func (s *Session) holdOp(code engine.OpCode, id []byte) (*engine.Op, error) {
	if err := arg.CheckText("id", id, engine.MaxIDLen); err != nil {
		return nil, err
	}
	op := s.batch.Next()
	op.Code, op.Key = code, id
	return op, nil
}
