package commands

import (
	"net/netip"
	"strings"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

// From the arguments of a settling command to its operations.

func planRelease(s *Session, args [][]byte) error {
	op, err := s.op(engine.OpRelease, args[1])
	if err != nil {
		return err
	}
	if err := arg.CheckText("holder", args[2], engine.MaxHolderLen); err != nil {
		return err
	}
	op.Text = args[2]
	_, _, err = arg.Options(op, args[3:], arg.ID)
	return err
}

func planRenew(s *Session, args [][]byte) error {
	op, err := s.op(engine.OpRenew, args[1])
	if err != nil {
		return err
	}
	if err := arg.CheckText("holder", args[2], engine.MaxHolderLen); err != nil {
		return err
	}
	op.Text = args[2]
	if op.TTLNs, err = arg.Duration("ttl", args[3]); err != nil {
		return err
	}
	_, _, err = arg.Options(op, args[4:], arg.ID)
	return err
}

func planRefund(s *Session, args [][]byte) error {
	op, err := s.op(engine.OpRefund, args[1])
	if err != nil {
		return err
	}
	if op.Cost, err = arg.Units("n", args[2], 1, engine.MaxUnits); err != nil {
		return err
	}
	_, _, err = arg.Options(op, args[3:], arg.ID)
	return err
}

func planBlock(s *Session, args [][]byte) error {
	if err := s.checkBlockable(args[1]); err != nil {
		return err
	}
	op, err := s.op(engine.OpBlock, args[1])
	if err != nil {
		return err
	}
	if arg.Is(args[2], "FOREVER") {
		op.TTLNs = engine.Never
	} else if op.TTLNs, err = arg.Span("duration", args[2]); err != nil {
		return arg.OrWords(err, "FOREVER", "duration", args[2])
	}
	op.Partial = s.ofSomeKeys()
	seen, _, err := arg.Options(op, args[3:], arg.Reason|arg.ID|arg.Everywhere)
	if err != nil || seen&arg.Everywhere == 0 {
		return err
	}
	op.Code = engine.OpBlockEverywhere
	return checkAddressKey(op.Key)
}

// ofSomeKeys reports whether the user may use some keys only: a block EVERYWHERE is about keys
// beyond them.
func (s *Session) ofSomeKeys() bool { return s.limits != nil && !s.limits.AllKeys }

// checkAddressKey refuses an address that is written otherwise than by those who ask about it: a
// block of it would reach none of them, and be answered OK.
func checkAddressKey(key []byte) error {
	text := strings.TrimPrefix(string(key), "ip:")
	addr, err := netip.ParseAddr(text)
	if err != nil {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil // no address
		}
		if addr = network.Addr(); addr.Is4() || network.Bits() != arg.ClientBitsV6 {
			return arg.Bad("key", "of a block EVERYWHERE must be one address, or the /64 of an IPv6 client", key)
		}
	}
	if want := "ip:" + arg.KeyOf(addr.String()); string(key) != want {
		return arg.Bad("key", "of a block EVERYWHERE must be "+want+" to reach this address", key)
	}
	return nil
}

func planUnblock(s *Session, args [][]byte) error {
	op, err := s.op(engine.OpUnblock, args[1])
	if err != nil {
		return err
	}
	op.Partial = s.ofSomeKeys()
	_, _, err = arg.Options(op, args[2:], arg.ID)
	return err
}

// planForgive takes policies and their keys, then perhaps ID and a token.
func planForgive(s *Session, args [][]byte) error {
	op, err := s.op(engine.OpForgive, args[2])
	if err != nil {
		return err
	}
	if err := arg.CheckText("policy", args[1], engine.MaxPolicyLen); err != nil {
		return err
	}
	op.Text = args[1]
	rest, err := s.morePairs(op, args[3:])
	if err != nil {
		return err
	}
	_, _, err = arg.Options(op, rest, arg.ID)
	return err
}

// planReset takes any number of keys, then perhaps ID and a token.
func planReset(s *Session, args [][]byte) error {
	keys := args[1:]
	var id []byte
	if n := len(keys); n >= 3 && arg.Is(keys[n-2], "ID") {
		keys, id = keys[:n-2], keys[n-1]
		if err := arg.CheckText("ID", id, engine.MaxIDLen); err != nil {
			return err
		}
	}
	return s.resetAll(keys, id)
}

// planDelete is Redis' DEL: every argument is a key.
func planDelete(s *Session, args [][]byte) error { return s.resetAll(args[1:], nil) }

func (s *Session) resetAll(keys [][]byte, id []byte) error {
	for _, key := range keys {
		if s.isBlacklist(key) {
			return resp.Error("ERR " + s.srv.cfg.BlacklistKey + " is the set of blocked addresses, use SREM to take members out of it")
		}
		if err := s.resetNamed(key, id); err != nil {
			return err
		}
	}
	return nil
}
