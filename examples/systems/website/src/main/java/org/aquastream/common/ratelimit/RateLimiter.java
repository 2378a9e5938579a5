package org.aquastream.common.ratelimit;

/** Decides about requests. */
public interface RateLimiter {
    /** Takes a token of a client under a limit. Throws an exception if the store is not reached. */
    RateLimitResult checkLimit(String clientKey, String limitKey) throws Exception;

    /** remainingTokens is below 0 if the request is not limited. Only a denial has retryAfterSeconds. */
    record RateLimitResult(boolean allowed, long remainingTokens, long retryAfterSeconds) {
        static final RateLimitResult UNLIMITED = new RateLimitResult(true, -1, 0);
    }
}
