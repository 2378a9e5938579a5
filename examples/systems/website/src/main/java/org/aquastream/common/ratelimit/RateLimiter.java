package org.aquastream.common.ratelimit;

/** Decides about requests. */
public interface RateLimiter {
    /** Takes a token of a client under a limit. Throws if the store is not reached. */
    RateLimitResult checkLimit(String clientKey, String limitKey) throws Exception;

    /** remainingTokens is below 0 where nothing is limited. retryAfterSeconds is of a denial. */
    record RateLimitResult(boolean allowed, long remainingTokens, long retryAfterSeconds) {
        static final RateLimitResult UNLIMITED = new RateLimitResult(true, -1, 0);
    }
}
