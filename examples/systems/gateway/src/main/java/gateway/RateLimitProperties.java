package gateway;

import java.util.List;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.core.io.Resource;

/**
 * The settings of the limiter.
 *
 * @param fallbackEnabled whether this process counts requests while the store is not reached; otherwise they pass
 * @param fallbackReduction the fraction of each limit that applies in that case
 * @param localCacheTtlSeconds how long an unused bucket stays in this process
 * @param redisKeyPrefix the prefix of all keys
 * @param ttlSeconds how long an unused bucket stays in the store
 * @param trustedProxies the networks of the proxies whose X-Forwarded-For counts; by default none
 * @param script the location of the token-bucket script, for the command SCRIPT
 */
@ConfigurationProperties("gateway.ratelimit")
public record RateLimitProperties(
        @DefaultValue("true") boolean fallbackEnabled,
        @DefaultValue("0.5") double fallbackReduction,
        @DefaultValue("60") int localCacheTtlSeconds,
        @DefaultValue("ratelimit") String redisKeyPrefix,
        @DefaultValue("120") int ttlSeconds,
        @DefaultValue List<String> trustedProxies,
        @DefaultValue("file:scripts/token-bucket.lua") Resource script,
        @DefaultValue("script") Command command) {

    /** The command that takes a token in the store. */
    public enum Command { SCRIPT, TOKENBUCKET }
}
