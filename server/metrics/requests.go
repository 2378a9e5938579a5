package metrics

import (
	"maps"
	"runtime"
	"slices"

	"github.com/weir-project/weir/server/service"
)

func (s collector) buildMetrics() []metric {
	return []metric{
		gauge("build_info", "Always 1, labeled with the running "+
			"version.", 1).with("version", s.Version, "goversion", runtime.Version()),
	}
}

// requestMetrics count the decisions that clients received, by command.
func (s collector) requestMetrics() (ms []metric) {
	const help = "Requests for units, by command and result. Only the node that received a request counts it."
	s.Stats.EachUsed(func(cmd *service.Command, stat *service.CommandStat) {
		allowed, limited := stat.Allowed.Load(), stat.Limited.Load()
		if allowed+limited == 0 {
			return
		}
		ms = append(ms,
			counter("requests_total", help, allowed).with("command", cmd.Full, "result", "allowed"),
			counter("requests_total", help, limited).with("command", cmd.Full, "result", "limited"))
	})
	return ms
}

// policyMetrics count the decisions that clients received, by existing policy.
func (s collector) policyMetrics() (ms []metric) {
	const (
		requests = "Requests checked under a policy. allowed: every limit allowed the request. limited: a limit of " +
			"this policy denied it. Only the node that received a request counts it."
		shadowed = "Requests that this node applied and that a policy in shadow mode would have limited."
	)
	set := s.Here.Policies()
	page := s.Book.At(set)
	for _, p := range set.All() {
		o := page.Of[p.Name]
		ms = append(ms,
			counter("policy_requests_total", requests, o.Allowed.Load()).with("policy", p.Name, "result", "allowed"),
			counter("policy_requests_total", requests, o.Limited.Load()).with("policy", p.Name, "result", "limited"),
			counter("policy_shadow_limited_total", shadowed, p.Counts().Shadowed).with("policy", p.Name))
	}
	return append(ms, gauge("policies", "Policies in force.", set.Len()))
}

// commandMetrics are the values of INFO commandstats.
func (s collector) commandMetrics() (ms []metric) {
	s.Stats.EachUsed(func(cmd *service.Command, stat *service.CommandStat) {
		ms = append(ms,
			counter("commands_total", "Commands executed.", stat.Calls.Load()).with("command", cmd.Full),
			counter("command_seconds_total", "Execution time of commands. The time of a pipeline is divided "+
				"evenly among its commands.", float64(stat.Ns.Load())/1e9).with("command", cmd.Full),
			counter("commands_failed_total", "Executed commands that answered with an "+
				"error.", stat.Failed.Load()).with("command", cmd.Full),
			counter("commands_rejected_total", "Commands rejected before "+
				"execution.", stat.Rejected.Load()).with("command", cmd.Full))
	})
	return ms
}

// watchedErrors exist with value 0 before the first error, so that an alert detects the first one.
var watchedErrors = []string{"CLUSTERDOWN", "EVENTSGONE", "OOM", "OVERLOADED", "TRYAGAIN", "UNKNOWN"}

// errorMetrics are the values of INFO errorstats, and failed logins and permissions.
func (s collector) errorMetrics() (ms []metric) {
	counts, _ := s.Stats.ErrorCounts()
	for _, word := range watchedErrors {
		counts[word] += 0
	}
	for _, word := range slices.Sorted(maps.Keys(counts)) {
		ms = append(ms, counter("error_replies_total",
			"Error replies by their first word. UNKNOWN: the outcome is unknown, and the units may have been "+
				"taken.", counts[word]).with("error", word))
	}
	ms = append(ms, s.unsupportedMetrics()...)
	w := s.Stats
	return append(ms,
		counter("auth_failures_total", "Logins with a wrong password.", w.AuthFailures.Load()),
		counter("auth_lockouts_total", "Lockouts of a client address: its logins are delayed after too many "+
			"failures.", w.Lockouts.Load()),
		counter("auth_delays_total", "Logins delayed or rejected because of earlier failures from the same "+
			"address.", w.AuthWaits.Load()),
		counter("permission_denials_total", "Commands rejected because the user lacks "+
			"permission.", w.NoPermission.Load()))
}

// unsupportedMetrics count what clients sent and weir does not support. Each kind exists with value 0, so that an alert
// detects the first one.
func (s collector) unsupportedMetrics() (ms []metric) {
	const help = "Requests refused because weir does not support them. kind: command, subcommand, option, script, " +
		"database, refused (on purpose) or bound (too large). command: `other` if Redis lacks it too."
	counts := s.Unsupported.Counts()
	for _, kind := range service.UnsupportedKinds {
		counts[[2]string{kind, service.OtherCommand}] += 0
	}
	for _, of := range slices.SortedFunc(maps.Keys(counts), func(a, b [2]string) int {
		return slices.Compare(a[:], b[:])
	}) {
		ms = append(ms, counter("unsupported_commands_total", help, counts[of]).with("command", of[1], "kind", of[0]))
	}
	return ms
}

// rlsMetrics count the answers to Envoy.
func (s collector) rlsMetrics() []metric {
	const (
		calls = "Calls of Envoy's rate limit service, by overall code. failed: weir gave no answer, and the " +
			"failure mode of Envoy applied."
		descriptors = "Descriptors in calls of Envoy's rate limit service, by result. unmatched: no policy or limit " +
			"applies, so weir limited nothing. Each descriptor also counts as an RL.CHECK."
	)
	r := &s.RLS
	return []metric{
		gauge("rls_connections", "Open connections to the port of Envoy's rate limit service.", r.Conns.Load()),
		counter("rls_calls_total", calls, r.OK.Load()).with("result", "ok"),
		counter("rls_calls_total", calls, r.OverLimit.Load()).with("result", "over_limit"),
		counter("rls_calls_total", calls, r.Failed.Load()).with("result", "failed"),
		counter("rls_descriptors_total", descriptors, r.Descriptors.Allowed.Load()).with("result", "allowed"),
		counter("rls_descriptors_total", descriptors, r.Descriptors.Limited.Load()).with("result", "limited"),
		counter("rls_descriptors_total", descriptors, r.Unmatched.Load()).with("result", "unmatched"),
	}
}

// sourceMetrics count what was read from sources of configuration.
func (s collector) sourceMetrics() (ms []metric) {
	const (
		contents = "Contents of the source of a configuration. refused: not in force, or only in part."
		refused  = "1: the newest content is not in force, or only in part; the log says why."
	)
	for _, of := range []struct {
		source string
		stats  *service.SourceStats
	}{{"policies", &s.PolicyFiles}, {"envoy", &s.EnvoyLimits}} {
		in, of := of.stats, of.source
		ms = append(ms,
			counter("config_contents_total", contents, in.Applied.Load()).with("source", of, "result", "applied"),
			counter("config_contents_total", contents, in.Refused.Load()).with("source", of, "result", "refused"),
			gauge("config_refused", refused, truth(in.Bad.Load())).with("source", of))
	}
	return ms
}

// ratelimit begins the names that envoyproxy/ratelimit has for its limits, so that its dashboards and alerts work.
const ratelimit = "ratelimit_service_rate_limit_"

// ratelimitMetrics count the hits under the limits of --envoy-config.
func (s collector) ratelimitMetrics() (ms []metric) {
	s.RLS.Limits.Each(func(labels service.RLSLabels, c *service.RLSSeries) {
		of := []string{"domain", labels.Domain}
		for _, l := range []struct{ name, value string }{{"key1", labels.Key1}, {"key2", labels.Key2}} {
			if l.value != "" {
				of = append(of, l.name, l.value)
			}
		}
		ms = append(ms,
			counter(ratelimit+"total_hits", "Hits under a limit of --envoy-config.", c.TotalHits.Load()).with(of...),
			counter(ratelimit+"over_limit", "Hits above a limit of --envoy-config.", c.OverLimit.Load()).with(of...),
			counter(ratelimit+"near_limit", "Hits above 80% of a limit of --envoy-config, up to the "+
				"limit.", c.NearLimit.Load()).with(of...),
			counter(ratelimit+"within_limit", "Hits that a limit of --envoy-config "+
				"allowed.", c.WithinLimit.Load()).with(of...),
			counter(ratelimit+"shadow_mode", "Hits above a limit of --envoy-config in shadow "+
				"mode.", c.ShadowMode.Load()).with(of...))
	})
	return ms
}
