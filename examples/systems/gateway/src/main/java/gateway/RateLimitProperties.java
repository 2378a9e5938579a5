package gateway;

import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.core.io.Resource;

/**
 * The settings of the limiter.
 *
 * @param fallbackEnabled whether requests are counted in this process while the store is away; otherwise they pass
 * @param fallbackReduction the part of each limit that applies then
 * @param localCacheTtlSeconds how long a bucket of this process is kept that nobody uses
 * @param redisKeyPrefix the first part of the keys
 * @param ttlSeconds how long a bucket in the store is kept that nobody uses
 * @param script where the text of the token-bucket script is, for the command SCRIPT
 */
@ConfigurationProperties("gateway.ratelimit")
public record RateLimitProperties(
        @DefaultValue("true") boolean fallbackEnabled,
        @DefaultValue("0.5") double fallbackReduction,
        @DefaultValue("60") int localCacheTtlSeconds,
        @DefaultValue("ratelimit") String redisKeyPrefix,
        @DefaultValue("120") int ttlSeconds,
        @DefaultValue("file:scripts/token-bucket.lua") Resource script,
        @DefaultValue("script") Command command) {

    /** What is sent to the store. */
    public enum Command { SCRIPT, TOKENBUCKET }
}
