package gateway;

/** A token bucket: how many tokens come back each second, and how many there are at most. */
public record RateLimit(int requestsPerSecond, int burstSize) {}
