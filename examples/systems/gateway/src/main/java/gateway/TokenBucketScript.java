package gateway;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.springframework.core.io.Resource;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import org.springframework.data.redis.core.script.RedisScript;
import reactor.core.publisher.Mono;

/** Runs the token-bucket script by its hash. Sends its text if the store does not know the hash. */
public class TokenBucketScript implements TokenBucket {
    private final ReactiveStringRedisTemplate redis;
    @SuppressWarnings("rawtypes")
    private final RedisScript<List> script;

    public TokenBucketScript(ReactiveStringRedisTemplate redis, Resource file) {
        this.redis = redis;
        try {
            this.script = RedisScript.of(file.getContentAsString(StandardCharsets.UTF_8), List.class);
        } catch (IOException e) {
            throw new UncheckedIOException("the token-bucket script cannot be read (gateway.ratelimit.script)", e);
        }
    }

    @Override
    public Mono<RateLimitResult> checkRateLimit(String key, int requestsPerSecond, int burstSize, int ttlSeconds) {
        List<String> arguments = List.of(Integer.toString(requestsPerSecond), Integer.toString(burstSize),
                Long.toString(System.currentTimeMillis()), Integer.toString(ttlSeconds));
        return redis.execute(script, List.of(key), arguments).next().map(TokenBucketScript::result);
    }

    private static RateLimitResult result(List<?> answer) {
        return new RateLimitResult((Long) answer.get(0) == 1, ((Long) answer.get(1)).intValue(), (Long) answer.get(2));
    }
}
