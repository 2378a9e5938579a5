package service

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/arg"
)

// AnonymousKey is the common key of all checks without a key that another protocol than RESP sends.
const AnonymousKey = "anonymous"

// DecideChecks decides the checks of a request of another protocol than RESP, and accounts for them as a session does
// for RL.CHECK. A node that redirects RESP clients decides here as well, because no proxy follows a redirect.
func (s *Service) DecideChecks(addr string, ops []engine.Op, ds []engine.Decision) error {
	return s.DecideShadowed(addr, ops, ds, func(int) bool { return false })
}

// DecideShadowed is DecideChecks for operations of which the sender ignores some denials: those for which shadowed
// returns true. Statistics and events have them as allowed, ds as they are. A block is never ignored.
func (s *Service) DecideShadowed(addr string, ops []engine.Op, ds []engine.Decision, shadowed func(i int) bool) error {
	if s.Draining.Load() {
		return limiter.ErrTryAgain
	}
	b := s.Batches.Get()
	defer s.Batches.Put(b)
	for i := range ops {
		*b.Next() = ops[i]
		b.Queue = append(b.Queue, Deferred{s.Check, 1})
	}
	start, out := time.Now(), b.Decisions()
	err := s.Limiter.Decide(b.Ops, out)
	copy(ds, out)
	for i := range out {
		if d := &out[i]; d.Status == engine.OK && d.Allowed == 0 && d.Part != engine.NoPart && shadowed(i) {
			d.Allowed = 1
		}
	}
	s.Account(&Client{Addr: addr}, b, out, err, start)
	if err != nil {
		s.CheckFailed(err)
	}
	return err
}

// CheckFailed counts a check of another protocol that could not be decided.
func (s *Service) CheckFailed(err error) {
	s.Stats.Fail(s.Check)
	s.Stats.CountError(ErrorText(err))
}

// CheckRejected counts a check of another protocol that was not executed, and returns the error text for its sender.
func (s *Service) CheckRejected(err error) (text string) {
	text = ErrorText(err)
	s.Stats.Reject(s.Check)
	s.Stats.CountError(text)
	return text
}

// ShowCheck shows a check of another protocol than RESP to monitors, and delays it while clients are paused.
func (s *Service) ShowCheck(addr, policy string, op *engine.Op) {
	if s.SlowPath.Load() == 0 {
		return
	}
	args := [][]byte{[]byte(strings.ToUpper(s.Check.Full)), []byte(policy), op.Key, []byte("COST"),
		strconv.AppendInt(nil, op.Cost, 10)}
	if len(op.From) > 0 {
		args = append(args, []byte("FROM"), op.From[len(arg.AddressPrefix):])
	}
	s.Events.ShowCommand(addr, 0, s.Check, args)
	s.Pause.Wait(s.Check, s.Stop)
}
