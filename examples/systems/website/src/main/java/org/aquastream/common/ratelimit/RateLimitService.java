package org.aquastream.common.ratelimit;

import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.ConsumptionProbe;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import java.time.Duration;
import org.aquastream.common.ratelimit.RateLimitProperties.RateLimit;
import org.springframework.context.annotation.Profile;
import org.springframework.stereotype.Service;

/** The limits as buckets of Bucket4j. The store has a string of bytes for each client and limit. */
@Service
@Profile("!policies")
public class RateLimitService implements RateLimiter {
    private final RateLimitProperties properties;
    private final BucketPool pool;

    public RateLimitService(RateLimitProperties properties, BucketPool pool) {
        this.properties = properties;
        this.pool = pool;
    }

    /** Decides whether a request is allowed. */
    @Override
    public RateLimitResult checkLimit(String clientKey, String limitKey) throws Exception {
        RateLimit limit = properties.limit(limitKey);
        if (!limit.isEnabled()) {
            return RateLimitResult.UNLIMITED;
        }
        ConsumptionProbe probe = pool.use(buckets -> take(buckets, "rate-limit:" + clientKey + ":" + limitKey, limit));
        return new RateLimitResult(probe.isConsumed(), probe.getRemainingTokens(), waitOf(probe, limit));
    }

    private static ConsumptionProbe take(ProxyManager<String> buckets, String key, RateLimit limit) {
        return buckets.builder().build(key, () -> configuration(limit)).tryConsumeAndReturnRemaining(1);
    }

    private static BucketConfiguration configuration(RateLimit limit) {
        return BucketConfiguration.builder()
                .addLimit(bandwidth -> bandwidth.capacity(limit.getCapacity())
                        .refillGreedy(limit.getRefillTokens(), limit.getRefillPeriod()))
                .build();
    }

    private static long waitOf(ConsumptionProbe probe, RateLimit limit) {
        if (probe.isConsumed()) {
            return 0;
        }
        if (limit.getRetryAfterSeconds() != null) {
            return limit.getRetryAfterSeconds();
        }
        return Duration.ofNanos(probe.getNanosToWaitForRefill()).plusSeconds(1).minusNanos(1).toSeconds();
    }
}
