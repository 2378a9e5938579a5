package client

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/limits"
)

// sameTerms reports whether two descriptions have the same terms. It does not rely on the version alone, which may
// repeat after a policy was deleted.
func (p *PolicyInfo) sameTerms(o *PolicyInfo) bool {
	return p.Version == o.Version && p.Shadow == o.Shadow && p.Disabled == o.Disabled && p.RetryAfter == o.RetryAfter &&
		p.Reserved == o.Reserved && p.Report == o.Report && slices.Equal(p.Limits, o.Limits) &&
		slices.EqualFunc(p.Overrides, o.Overrides, func(a, b PolicyOverride) bool {
			return a.Pattern == b.Pattern && (a.Left == Never) == (b.Left == Never) && slices.Equal(a.Limits, b.Limits)
		})
}

// install adds a policy of weir to the table, with its limits and overrides scaled by the fraction. Usage is
// kept.
func (l *localLimiter) install(p PolicyInfo) error {
	terms := &engine.Policy{Name: p.Name, Shadow: p.Shadow, Disabled: p.Disabled, RetryNs: int64(max(p.RetryAfter, 0))}
	var err error
	if terms.Limits, err = l.scaledLimits(p.Limits); err != nil {
		return err
	}
	if terms.Reserved, err = parseReserved(p.Reserved); err != nil {
		return err
	}
	if terms.ReportNs, err = parseReport(p.Report); err != nil {
		return err
	}
	changes := []engine.Op{{Policy: &engine.PolicyChange{Do: engine.PolicySet, Terms: terms}}}
	wanted := map[string]bool{}
	for _, o := range p.Overrides {
		limits, err := l.scaledLimits(o.Limits)
		if err != nil {
			return err
		}
		wanted[o.Pattern] = true
		changes = append(changes, overrideOp(engine.PolicyOverride, o.Pattern, limits, ttlNs(o.Left)))
	}
	if old := l.table.Policies().Get([]byte(p.Name)); old != nil {
		for i := range old.Overrides {
			if pattern := old.Overrides[i].Pattern; !wanted[pattern] {
				changes = append(changes, overrideOp(engine.PolicyUnoverride, pattern, nil, 0))
			}
		}
	}
	for _, op := range changes {
		op.Code, op.Key = engine.OpPolicy, []byte(p.Name)
		if !op.Policy.Valid(op.Key) {
			return fmt.Errorf("this client does not know its limits: %v", p.Limits)
		}
		if d := l.do(op); d.Status != engine.OK {
			return fmt.Errorf("the local limiter has no memory for its limits")
		}
	}
	return nil
}

// ttlNs converts the remaining time of an override to Op.TTLNs, where 0 means no end.
func ttlNs(left time.Duration) int64 {
	if left == Never {
		return 0
	}
	return int64(max(left, time.Millisecond))
}

func overrideOp(do engine.PolicyDo, pattern string, limits []engine.PolicyLimit, ttlNs int64) engine.Op {
	terms := &engine.Policy{Overrides: []engine.Override{{Pattern: pattern, Limits: limits, UntilNs: engine.Never}}}
	return engine.Op{TTLNs: ttlNs, Policy: &engine.PolicyChange{Do: do, Terms: terms}}
}

func (l *localLimiter) scaledLimits(texts []string) ([]engine.PolicyLimit, error) {
	all := make([]engine.PolicyLimit, len(texts))
	for i, text := range texts {
		limit, err := parseLimit(strings.Fields(text))
		if err != nil {
			return nil, fmt.Errorf("this client does not know the limit %q: %w", text, err)
		}
		limit.Limit, limit.Notify = scaled(limit.Limit, l.fraction), ""
		all[i] = limit
	}
	return all, nil
}

// remove deletes a policy that is no longer used.
func (l *localLimiter) remove(name string) {
	l.do(engine.Op{Code: engine.OpPolicy, Key: []byte(name), Policy: &engine.PolicyChange{Do: engine.PolicyDelete}})
}

// parseReport parses the Report of a PolicyInfo. Older versions of weir send none.
func parseReport(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	r := limits.Reader{Stored: true}
	return r.Report([]byte(text))
}

// parseReserved parses the Reserved of a PolicyInfo, which is empty or 0% for none.
func parseReserved(text string) (int64, error) {
	if text == "" || text == limits.ReservedText(0) {
		return 0, nil
	}
	return limits.Reserved([]byte(text))
}
