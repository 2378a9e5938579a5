package commands

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/arg"
	"github.com/weir-project/weir/server/resp"
)

// From the arguments of a decision to its operation.

func planTokenBucket(s *Session, args [][]byte) error {
	op, err := s.take(args[1], engine.TokenBucket)
	if err != nil {
		return err
	}
	if op.Limit.Rate, err = s.rateArg(args[2]); err != nil {
		return err
	}
	if op.Limit.Max, err = arg.Units("burst", args[3], 1, engine.MaxUnits); err != nil {
		return err
	}
	_, _, err = arg.Options(op, args[4:], arg.Cost|arg.Partial|arg.MaxWait|arg.From|arg.ID)
	return err
}

func planLeakyBucket(s *Session, args [][]byte) error {
	op, err := s.take(args[1], engine.LeakyBucket)
	if err != nil {
		return err
	}
	if op.Limit.Rate, err = s.rateArg(args[2]); err != nil {
		return err
	}
	if op.Limit.Max, err = arg.Units("capacity", args[3], 0, engine.MaxUnits); err != nil {
		return err
	}
	_, _, err = arg.Options(op, args[4:], arg.Cost|arg.From|arg.ID)
	return err
}

func planSliding(s *Session, args [][]byte) error {
	return s.planWindow(args, engine.SlidingLog, engine.MaxLogUnits)
}

func planSlidingCounter(s *Session, args [][]byte) error {
	return s.planWindow(args, engine.SlidingCounter, engine.MaxUnits)
}

func (s *Session) planWindow(args [][]byte, a engine.Algorithm, most int64) error {
	op, err := s.take(args[1], a)
	if err != nil {
		return err
	}
	if op.Limit.WindowNs, err = s.windowArg(args[2]); err != nil {
		return err
	}
	if op.Limit.Max, err = arg.Units("max", args[3], 1, most); err != nil {
		return err
	}
	_, _, err = arg.Options(op, args[4:], arg.Cost|arg.Partial|arg.From|arg.ID)
	return err
}

func planFixed(s *Session, args [][]byte) error {
	op, err := s.take(args[1], engine.FixedWindow)
	if err != nil {
		return err
	}
	limit := &op.Limit
	if limit.Mode = arg.WindowMode(args[2]); limit.Mode == engine.Aligned {
		if limit.WindowNs, err = s.windowArg(args[2]); err != nil {
			return arg.OrWords(err, "DAY, WEEK, MONTH, YEAR or FOREVER", "window", args[2])
		}
	}
	if limit.Max, err = arg.Units("max", args[3], 1, engine.MaxUnits); err != nil {
		return err
	}
	seen, zone, err := arg.Options(op, args[4:], arg.Cost|arg.Partial|arg.First|arg.Zone|arg.From|arg.ID)
	if err != nil {
		return err
	}
	calendar := limit.Mode >= engine.Day && limit.Mode <= engine.Year
	switch {
	case seen&arg.Zone != 0 && !calendar:
		return resp.Error("ERR TZ goes with a window of DAY, WEEK, MONTH or YEAR only")
	case seen&arg.First != 0 && limit.Mode != engine.Aligned:
		return resp.Error("ERR FIRST goes with a window of a duration only, like 1m")
	case seen&arg.First != 0:
		limit.Mode = engine.FromFirst
	case calendar:
		op.Calendar, err = s.srv.calendars.At(s.srv.Limiter.Now(), limit.Mode, zone)
	}
	return err
}

func planAcquire(s *Session, args [][]byte) error {
	op, err := s.take(args[1], engine.Concurrency)
	if err != nil {
		return err
	}
	if op.Limit.Max, err = arg.Units("max", args[2], 1, engine.MaxUnits); err != nil {
		return err
	}
	if op.TTLNs, err = arg.Duration("ttl", args[3]); err != nil {
		return err
	}
	seen, _, err := arg.Options(op, args[4:], arg.Holder|arg.Cost|arg.From|arg.ID)
	switch {
	case err != nil:
		return err
	case seen&arg.Holder != 0:
	case seen&arg.ID != 0:
		op.Text = op.ID // the same request again must name the same holder
	default:
		op.Text = s.batch.NewHolder()
	}
	return nil
}

func planStrike(s *Session, args [][]byte) error {
	op, err := s.take(args[1], engine.Strike)
	if err != nil {
		return err
	}
	if op.Limit.WindowNs, err = s.windowArg(args[2]); err != nil {
		return err
	}
	var steps [engine.MaxSteps]engine.Step
	n, rest, err := arg.Steps(&steps, args[3:])
	if err != nil {
		return err
	}
	op.Limit.Max = steps[n-1].Threshold
	op.Limit.Steps = s.packSteps(steps[:n])
	seen, _, err := arg.Options(op, rest, arg.Attempts|arg.Extend|arg.Cost|arg.From|arg.ID)
	if seen&arg.Attempts != 0 {
		op.Limit.Strikes |= engine.Attempts
	}
	if seen&arg.Extend != 0 {
		op.Limit.Strikes |= engine.Extend
	}
	return err
}

// packSteps remembers the last steps it packed: a client repeats its limits.
func (s *Session) packSteps(steps []engine.Step) engine.Steps {
	same := s.steps.Len() == len(steps)
	for i := 0; same && i < len(steps); i++ {
		same = s.steps.At(i) == steps[i]
	}
	if !same {
		s.steps = engine.MakeSteps(steps)
	}
	return s.steps
}
