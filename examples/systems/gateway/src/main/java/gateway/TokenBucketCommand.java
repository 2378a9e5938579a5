package gateway;

import io.lettuce.core.api.async.RedisAsyncCommands;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import reactor.core.publisher.Mono;

/** Sends RL.TOKENBUCKET instead of the script. weir uses its own clock, and a full bucket needs no TTL. */
public class TokenBucketCommand implements TokenBucket {
    private enum Command implements ProtocolKeyword {
        TOKENBUCKET;

        @Override
        public byte[] getBytes() {
            return "RL.TOKENBUCKET".getBytes(StandardCharsets.US_ASCII);
        }
    }

    private final LettuceConnectionFactory connections;

    public TokenBucketCommand(LettuceConnectionFactory connections) {
        this.connections = connections;
    }

    @Override
    @SuppressWarnings("unchecked")
    public Mono<RateLimitResult> checkRateLimit(String key, int requestsPerSecond, int burstSize, int ttlSeconds) {
        return Mono.fromCompletionStage(() -> {
            var redis = (RedisAsyncCommands<byte[], byte[]>) connections.getConnection().getNativeConnection();
            return redis.dispatch(Command.TOKENBUCKET, new ArrayOutput<>(ByteArrayCodec.INSTANCE),
                    new CommandArgs<>(ByteArrayCodec.INSTANCE).addKey(key.getBytes(StandardCharsets.UTF_8))
                            .add(requestsPerSecond + "/s").add(burstSize));
        }).map(TokenBucketCommand::result);
    }

    private static RateLimitResult result(List<Object> answer) {
        return new RateLimitResult((Long) answer.get(0) == 1, ((Long) answer.get(1)).intValue(),
                System.currentTimeMillis() + (Long) answer.get(3));
    }
}
