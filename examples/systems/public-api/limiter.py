"""Limits of the public API, decided by weir."""

import os
from threading import Lock
from time import monotonic


class RedisRateLimiter:
    """A sliding window for each client. One atomic command replaces the four commands on a sorted set."""

    def __init__(self, redis_client, key_prefix="ratelimit"):
        self.redis = redis_client
        self.key_prefix = key_prefix

    def is_allowed(self, client_id, limit, window_size):
        return self._decide(client_id, limit, window_size, 1)[0] == 1

    def get_status(self, client_id, limit, window_size):
        remaining = self._decide(client_id, limit, window_size, 0)[1]
        return {"limit": limit, "remaining": remaining, "used": limit - remaining}

    def _decide(self, client_id, limit, window_size, cost):
        key = f"{self.key_prefix}:{client_id}"
        return self.redis.execute_command("RL.SLIDING", key, window_size, limit, "COST", cost)


def number(name, default=None):
    """Reads a setting from the environment. The error names the variable and the values that it accepts."""
    text = os.environ.get(name, "")
    if text == "" and default is not None:
        return default
    if not text.isdigit() or int(text) < 1:
        raise SystemExit(f"{name} must be a whole number of at least 1, not {text!r}")
    return int(text)


class Settings:
    """The RATE_LIMIT_* variables, and the limits of weir that they set."""

    def __init__(self):
        enabled = os.environ.get("RATE_LIMIT_ENABLED", "true").lower()
        if enabled not in ("true", "false"):
            raise SystemExit(f"RATE_LIMIT_ENABLED must be true or false, not {enabled!r}")
        self.enabled = enabled == "true"
        if not self.enabled:
            return
        self.algorithm = os.environ.get("RATE_LIMIT_ALGORITHM", "sliding_window")
        self.window, self.burst = number("RATE_LIMIT_WINDOW"), number("RATE_LIMIT_BURST", 0)
        self.policies = {"env:default": self.rule(number("RATE_LIMIT_DEFAULT"))}
        for policy, name in ("env:per-ip", "RATE_LIMIT_PER_IP"), ("env:per-user", "RATE_LIMIT_PER_USER"):
            if most := number(name, 0):
                self.policies[policy] = self.rule(most)

    def rule(self, most):
        rate = f"{most}/{self.window}s"
        rules = {
            "fixed_window": ("FIXED", self.window, most),
            "sliding_window": ("SLIDING", self.window, most),
            "sliding_window_counter": ("SLIDINGCOUNTER", self.window, most),
            "token_bucket": ("TOKENBUCKET", rate, self.burst or most),
            "leaky_bucket": ("LEAKYBUCKET", rate, most * 5 // self.window),
        }
        if self.algorithm not in rules:
            raise SystemExit(f"RATE_LIMIT_ALGORITHM must be one of {', '.join(rules)}, not {self.algorithm!r}")
        return rules[self.algorithm]

    def install(self, redis):
        for policy, rule in self.policies.items():
            redis.execute_command("RL.POLICY", "SET", policy, "LIMIT", *rule)

    def pairs(self, endpoint, ip, user):
        """Returns the policies and keys of a request, for one check."""
        keys = {"env:default": f"{endpoint}|{user or ip}", "env:per-ip": ip, "env:per-user": user}
        return [(policy, keys[policy]) for policy in self.policies if keys[policy]]


class CircuitBreaker:
    """A circuit breaker. Five failures in a row open it. After a pause it is half-open: one request tries."""

    def __init__(self, failures=5, pause=2.0):
        self.most, self.pause = failures, pause
        self.failures, self.until, self.lock = 0, 0.0, Lock()

    def is_open(self):
        with self.lock:
            if self.failures < self.most:
                return False
            if monotonic() < self.until:
                return True
            self.until = monotonic() + self.pause  # half-open: this request tries
            return False

    def report(self, failed):
        with self.lock:
            self.failures = self.failures + 1 if failed else 0
            if self.failures == self.most:
                self.until = monotonic() + self.pause
            self.failures = min(self.failures, self.most)
