package server

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limiter"
	"github.com/weir-project/weir/server/arg"
)

// decideChecks carries out the checks of a request that came by another protocol than RESP,
// and accounts for them as a session does for RL.CHECK. A node that redirects decides here
// as well: no proxy would follow.
func (s *service) decideChecks(addr string, ops []engine.Op, ds []engine.Decision) error {
	if s.draining.Load() {
		return limiter.ErrTryAgain
	}
	b := s.batches.get()
	defer s.batches.put(b)
	for i := range ops {
		*b.next() = ops[i]
		b.queue = append(b.queue, deferred{s.check, 1})
	}
	start, out := time.Now(), b.room()
	err := s.lim.Decide(b.ops, out)
	s.account(&clientInfo{addr: addr}, b, out, err, start)
	copy(ds, out)
	if err != nil {
		s.checkFailed(err)
	}
	return err
}

// checkFailed counts a check by another protocol that could not be decided.
func (s *service) checkFailed(err error) {
	s.stats.fail(s.check)
	s.stats.countError(errorText(err))
}

// checkRejected counts a check by another protocol that was not carried out, and returns
// what its sender is told.
func (s *service) checkRejected(err error) (text string) {
	text = errorText(err)
	s.stats.reject(s.check)
	s.stats.countError(text)
	return text
}

// heed shows a check that came by another protocol than RESP to monitors, and holds it back
// while clients are paused.
func (s *service) heed(addr, policy string, op *engine.Op) {
	if s.attention.Load() == 0 {
		return
	}
	args := [][]byte{[]byte(strings.ToUpper(s.check.full)), []byte(policy), op.Key, []byte("COST"), strconv.AppendInt(nil, op.Cost, 10)}
	if len(op.From) > 0 {
		args = append(args, []byte("FROM"), op.From[len(arg.AddressPrefix):])
	}
	s.hub.showCommand(addr, s.check, args)
	s.pause.wait(s.check, s.stop)
}
