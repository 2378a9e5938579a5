package gateway;

import io.lettuce.core.RedisCommandExecutionException;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.stereotype.Service;
import reactor.core.publisher.Mono;

/** Asks the store. If the store is not reached or answers an error, asks the limiter of this process. */
@Service
public class RateLimitService {
    private static final Logger LOG = LoggerFactory.getLogger(RateLimitService.class);
    /** The least time between two log lines about answers that are errors. A single key can cause one with each request. */
    private static final long BETWEEN_ERRORS_MS = Duration.ofMinutes(1).toMillis();

    private final TokenBucket store;
    private final LocalRateLimiter local;
    private final RateLimitProperties properties;
    private final AtomicBoolean usingFallback = new AtomicBoolean();
    private final AtomicLong quietUntilMs = new AtomicLong();

    public RateLimitService(TokenBucket store, LocalRateLimiter local, RateLimitProperties properties) {
        this.store = store;
        this.local = local;
        this.properties = properties;
    }

    public Mono<RateLimitResult> checkRateLimit(UUID routeId, String clientKey, RateLimit limit) {
        String key = properties.redisKeyPrefix() + ":" + routeId + ":" + clientKey;
        return store.checkRateLimit(key, limit.requestsPerSecond(), limit.burstSize(), properties.ttlSeconds())
                .doOnNext(result -> storeAnswered())
                .onErrorResume(e -> Mono.just(withoutStore(e, key, limit)));
    }

    private void storeAnswered() {
        if (usingFallback.compareAndSet(true, false)) {
            LOG.info("the store answers again: limits are shared by all instances");
        }
    }

    private RateLimitResult withoutStore(Throwable e, String key, RateLimit limit) {
        String instead = properties.fallbackEnabled() ? "this instance limits by itself" : "requests pass";
        if (NestedExceptionUtils.getMostSpecificCause(e) instanceof RedisCommandExecutionException error) {
            logError(error, key, instead);
        } else if (usingFallback.compareAndSet(false, true)) {
            LOG.warn("the store does not decide, {}: {}", instead, e.toString());
        }
        if (!properties.fallbackEnabled()) {
            return new RateLimitResult(true, limit.burstSize(), System.currentTimeMillis());
        }
        return local.checkRateLimit(key, limit.requestsPerSecond(), limit.burstSize());
    }

    /** Logs an answer that is an error. It is no outage: the same store may decide about all other keys. */
    private void logError(Throwable e, String key, String instead) {
        long now = System.currentTimeMillis();
        long quietUntil = quietUntilMs.get();
        if (!usingFallback.get() && now >= quietUntil && quietUntilMs.compareAndSet(quietUntil, now + BETWEEN_ERRORS_MS)) {
            LOG.warn("the store answers an error for {} and perhaps for other keys, {}: {}", key, instead, e.getMessage());
        }
    }
}
