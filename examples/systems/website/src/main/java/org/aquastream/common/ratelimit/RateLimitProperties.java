package org.aquastream.common.ratelimit;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.springframework.boot.context.properties.ConfigurationProperties;

/** The limits, from aquastream.rate-limit in application.yml. */
@ConfigurationProperties(prefix = "aquastream.rate-limit")
public class RateLimitProperties {
    /** If it is false, no request is limited. */
    private boolean enabled = true;
    private RateLimit defaultLimit = new RateLimit();
    private Map<String, RateLimit> limits = new HashMap<>();
    /** The networks of the load balancers. X-Forwarded-For, X-Real-IP and the user header count only from these. */
    private List<String> trustedProxies = List.of("127.0.0.0/8", "::1/128");
    /** A header with the user, such as X-User-Id, from the load balancer. Without it, clients are addresses. */
    private String userHeader;
    /** Whether requests pass while no store is there. Otherwise they get 503, as they do while the store is busy. */
    private boolean failOpen = true;

    /**
     * Returns the limit with a name, or the default limit. If the limit "default" has no retry-after-seconds, it
     * takes that of the default limit.
     */
    RateLimit limit(String name) {
        RateLimit limit = limits.getOrDefault(name, defaultLimit);
        if (name.equals("default") && limit.retryAfterSeconds == null) {
            limit.retryAfterSeconds = defaultLimit.retryAfterSeconds;
        }
        return limit;
    }

    boolean has(String name) {
        return limits.containsKey(name);
    }

    /** A token bucket. window only documents the time for which the capacity is meant. The refill decides. */
    public static class RateLimit {
        private long capacity = 100;
        private Duration window = Duration.ofMinutes(1);
        private long refillTokens = 10;
        private Duration refillPeriod = Duration.ofSeconds(1);
        private boolean enabled = true;
        /** The retry time in a denial. If it is not set, it is the time until the next token. */
        private Long retryAfterSeconds;

        public long getCapacity() {
            return capacity;
        }

        public void setCapacity(long capacity) {
            this.capacity = capacity;
        }

        public Duration getWindow() {
            return window;
        }

        public void setWindow(Duration window) {
            this.window = window;
        }

        public long getRefillTokens() {
            return refillTokens;
        }

        public void setRefillTokens(long refillTokens) {
            this.refillTokens = refillTokens;
        }

        public Duration getRefillPeriod() {
            return refillPeriod;
        }

        public void setRefillPeriod(Duration refillPeriod) {
            this.refillPeriod = refillPeriod;
        }

        public boolean isEnabled() {
            return enabled;
        }

        public void setEnabled(boolean enabled) {
            this.enabled = enabled;
        }

        public Long getRetryAfterSeconds() {
            return retryAfterSeconds;
        }

        public void setRetryAfterSeconds(Long retryAfterSeconds) {
            this.retryAfterSeconds = retryAfterSeconds;
        }
    }

    public boolean isEnabled() {
        return enabled;
    }

    public void setEnabled(boolean enabled) {
        this.enabled = enabled;
    }

    public RateLimit getDefaultLimit() {
        return defaultLimit;
    }

    public void setDefaultLimit(RateLimit defaultLimit) {
        this.defaultLimit = defaultLimit;
    }

    public Map<String, RateLimit> getLimits() {
        return limits;
    }

    public void setLimits(Map<String, RateLimit> limits) {
        this.limits = limits;
    }

    public List<String> getTrustedProxies() {
        return trustedProxies;
    }

    public void setTrustedProxies(List<String> trustedProxies) {
        this.trustedProxies = trustedProxies;
    }

    public String getUserHeader() {
        return userHeader;
    }

    public void setUserHeader(String userHeader) {
        this.userHeader = userHeader;
    }

    public boolean isFailOpen() {
        return failOpen;
    }

    public void setFailOpen(boolean failOpen) {
        this.failOpen = failOpen;
    }
}
