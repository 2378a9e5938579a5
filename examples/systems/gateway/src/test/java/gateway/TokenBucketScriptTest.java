package gateway;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.springframework.core.io.FileSystemResource;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import reactor.test.StepVerifier;

/** Tests the three acceptance criteria with the store at -Dstore.port on this machine. */
class TokenBucketScriptTest {
    private LettuceConnectionFactory connections;
    private TokenBucket bucket;

    @BeforeEach
    void connect() {
        connections = new LettuceConnectionFactory("127.0.0.1", Integer.getInteger("store.port", 6379));
        connections.afterPropertiesSet();
        connections.start();
        bucket = Boolean.getBoolean("store.command") ? new TokenBucketCommand(connections)
                : new TokenBucketScript(new ReactiveStringRedisTemplate(connections), new FileSystemResource("scripts/token-bucket.lua"));
    }

    @AfterEach
    void disconnect() {
        connections.destroy();
    }

    private static String newKey() {
        return "ratelimit:" + UUID.randomUUID() + ":client1";
    }

    @Test
    void firstRequestFindsAFullBurst() {
        StepVerifier.create(bucket.checkRateLimit(newKey(), 10, 15)).assertNext(result -> {
            assertThat(result.allowed()).isTrue();
            assertThat(result.remaining()).isEqualTo(14);
        }).verifyComplete();
    }

    @Test
    void moreThanTheBurstIsDenied() {
        String key = newKey();
        int admitted = 0;
        while (admitted < 100 && bucket.checkRateLimit(key, 1, 3).block().allowed()) {
            admitted++;
        }
        // On a slow machine, a token may have arrived since.
        assertThat(admitted).isBetween(3, 99);
    }

    @Test
    void tokensComeBackWithTime() throws InterruptedException {
        String key = newKey();
        for (int i = 0; i < 3; i++) {
            bucket.checkRateLimit(key, 10, 3).block();
        }
        Thread.sleep(550);
        assertThat(bucket.checkRateLimit(key, 10, 3).block().allowed()).isTrue();
    }
}
