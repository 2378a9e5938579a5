package gateway;

import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.stereotype.Service;
import reactor.core.publisher.Mono;

/** Asks the store. If the store is not reached or answers an error, asks the limiter of this process. */
@Service
public class RateLimitService {
    private static final Logger LOG = LoggerFactory.getLogger(RateLimitService.class);

    private final TokenBucket store;
    private final LocalRateLimiter local;
    private final RateLimitProperties properties;
    private final AtomicBoolean usingFallback = new AtomicBoolean();

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
        if (usingFallback.compareAndSet(false, true)) {
            LOG.warn("the store does not decide, {}: {}", properties.fallbackEnabled() ? "this instance limits by itself" : "requests pass",
                    e.toString());
        }
        if (!properties.fallbackEnabled()) {
            return new RateLimitResult(true, limit.burstSize(), System.currentTimeMillis());
        }
        return local.checkRateLimit(key, limit.requestsPerSecond(), limit.burstSize());
    }
}
