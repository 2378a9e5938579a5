package envoyrls

import (
	"github.com/weir-project/weir/engine"
	"github.com/weir-project/weir/server/service"
)

// KuadrantName is the gRPC name of Kuadrant's service, whose messages are Envoy's. A gateway asks before a request and
// reports after it, because only the response says what the request has cost, such as the tokens of a model.
const KuadrantName = "kuadrant.service.ratelimit.v1.RateLimitService"

// method is what a call does with the limits of its descriptors.
type method int

const (
	takes   method = iota // ShouldRateLimit: take the units, or none
	looks                 // CheckRateLimit: answer whether one unit is left; limitador ignores hits_addend too
	reports               // Report: take the units that were used, also if they do not fit, and answer OK
)

// change makes an operation that takes units one of the method.
func (m method) change(op *engine.Op) {
	switch m {
	case looks:
		op.Cost, op.Dry = 1, true
	case reports:
		if op.Partial = op.Code == engine.OpTake; !op.Partial { // what a fixed window lacks changes no later answer
			op.Code = engine.OpCharge
		}
	}
}

// countHits counts a decision about a limit of the configuration. The units of a report that the limit did not have
// count as those of a denied request.
func countHits(to *service.RLSSeries, op *engine.Op, d engine.Decision, shadow bool) {
	if op.Dry {
		return
	}
	rest := *op
	if op.Partial && d.Allowed > 0 {
		taken := *op
		taken.Cost, rest.Cost = d.Allowed, op.Cost-d.Allowed
		to.Count(&taken, &d, shadow)
		d.Allowed = 0
	}
	if rest.Cost > 0 {
		to.Count(&rest, &d, shadow)
	}
}
