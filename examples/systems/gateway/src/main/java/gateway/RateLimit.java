package gateway;

/** A token bucket: the tokens that arrive each second, and the most that it holds. */
public record RateLimit(int requestsPerSecond, int burstSize) {}
