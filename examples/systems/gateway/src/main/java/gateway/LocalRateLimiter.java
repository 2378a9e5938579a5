package gateway;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.time.Duration;
import java.util.function.LongSupplier;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.stereotype.Component;

/** Token buckets in this process, for a fraction of each limit, while the store is not reached. */
@Component
public class LocalRateLimiter {
    /** Bounds the memory during an attack from many addresses, to some megabytes. */
    static final int MAX_BUCKETS = 100_000;

    private final double reduction;
    private final LongSupplier nowMs;
    private final Cache<String, Bucket> buckets;

    private static final class Bucket {
        double tokens;
        long refilledAtMs;
    }

    @Autowired
    public LocalRateLimiter(RateLimitProperties properties) {
        this(properties, System::currentTimeMillis);
    }

    LocalRateLimiter(RateLimitProperties properties, LongSupplier nowMs) {
        this.reduction = properties.fallbackReduction();
        this.nowMs = nowMs;
        this.buckets = Caffeine.newBuilder().maximumSize(MAX_BUCKETS)
                .expireAfterAccess(Duration.ofSeconds(properties.localCacheTtlSeconds()))
                .ticker(() -> nowMs.getAsLong() * 1_000_000).build();
    }

    public RateLimitResult checkRateLimit(String key, int requestsPerSecond, int burstSize) {
        int rate = reduced(requestsPerSecond);
        int burst = reduced(burstSize);
        long now = nowMs.getAsLong();
        Bucket bucket = buckets.get(key, k -> {
            Bucket full = new Bucket();
            full.tokens = burst;
            full.refilledAtMs = now;
            return full;
        });
        synchronized (bucket) {
            long elapsedMs = Math.max(now - bucket.refilledAtMs, 0);
            bucket.tokens = Math.min(burst, bucket.tokens + elapsedMs * rate / 1000.0);
            bucket.refilledAtMs = Math.max(now, bucket.refilledAtMs);
            boolean allowed = bucket.tokens >= 1;
            if (allowed) {
                bucket.tokens--;
            }
            long secondsToFull = (long) Math.ceil((burst - bucket.tokens) / rate);
            return new RateLimitResult(allowed, (int) bucket.tokens, now + secondsToFull * 1000);
        }
    }

    /** Returns the fraction of a limit, at least 1. */
    private int reduced(int limit) {
        return Math.max(1, (int) (limit * reduction));
    }
}
