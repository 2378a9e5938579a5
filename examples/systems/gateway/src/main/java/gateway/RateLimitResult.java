package gateway;

/**
 * The answer to one request.
 *
 * @param remaining the whole tokens that remain
 * @param resetTime when the bucket is full again, in milliseconds since 1970
 */
public record RateLimitResult(boolean allowed, int remaining, long resetTime) {}
