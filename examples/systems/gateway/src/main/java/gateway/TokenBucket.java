package gateway;

import reactor.core.publisher.Mono;

/** Takes a token from the bucket of a key in the store. */
public interface TokenBucket {
    int DEFAULT_TTL_SECONDS = 120;

    Mono<RateLimitResult> checkRateLimit(String key, int requestsPerSecond, int burstSize, int ttlSeconds);

    default Mono<RateLimitResult> checkRateLimit(String key, int requestsPerSecond, int burstSize) {
        return checkRateLimit(key, requestsPerSecond, burstSize, DEFAULT_TTL_SECONDS);
    }
}
