"""The five metrics of the public API, in the format of Prometheus."""

from threading import Lock

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Metrics:
    def __init__(self, redis, usage):
        self.redis, self.usage, self.lock = redis, usage, Lock()  # usage: the policies and keys of the gauge
        self.allowed = self.blocked = 0
        self.seconds, self.within = 0.0, [0] * len(BOUNDS)

    def count(self, allowed, seconds):
        with self.lock:
            self.allowed += allowed
            self.blocked += not allowed
            self.seconds += seconds
            for i, bound in enumerate(BOUNDS):
                self.within[i] += seconds <= bound

    def page(self):
        with self.lock:
            total = self.allowed + self.blocked
            lines = [
                "# TYPE ratelimit_requests_total counter", f"ratelimit_requests_total {total}",
                "# TYPE ratelimit_requests_allowed counter", f"ratelimit_requests_allowed {self.allowed}",
                "# TYPE ratelimit_requests_blocked counter", f"ratelimit_requests_blocked {self.blocked}",
                "# TYPE ratelimit_avg_response_time histogram",
                *(f'ratelimit_avg_response_time_bucket{{le="{bound}"}} {n}' for bound, n in zip(BOUNDS, self.within)),
                f'ratelimit_avg_response_time_bucket{{le="+Inf"}} {total}',
                f"ratelimit_avg_response_time_sum {self.seconds}", f"ratelimit_avg_response_time_count {total}",
                "# TYPE ratelimit_current_usage gauge",
            ]
        for policy, key in self.usage:
            _, remaining, _, _, limit, _ = self.redis.execute_command("RL.CHECK", policy, key, "COST", 0)
            lines.append(f'ratelimit_current_usage{{key="{key}",policy="{policy}"}} {limit - remaining}')
        return "\n".join(lines) + "\n"
