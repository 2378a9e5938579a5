package org.aquastream.common.ratelimit;

import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.output.ArrayOutput;
import java.nio.charset.StandardCharsets;
import java.util.List;
import org.springframework.context.annotation.Profile;
import org.springframework.data.redis.connection.lettuce.LettuceConnection;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.stereotype.Service;

/** The limits as policies of weir, which hold the numbers. A request is one command. */
@Service
@Profile("policies")
public class PolicyLimitService implements RateLimiter {
    private final LettuceConnectionFactory lettuce;

    public PolicyLimitService(LettuceConnectionFactory lettuce) {
        this.lettuce = lettuce;
    }

    @Override
    public RateLimitResult checkLimit(String clientKey, String limitKey) {
        LettuceConnection connection = (LettuceConnection) lettuce.getConnection();
        try {
            List<?> answer = (List<?>) connection.execute(
                    "RL.CHECK", new ArrayOutput<>(ByteArrayCodec.INSTANCE), bytes(limitKey), bytes(clientKey));
            boolean limited = number(answer, 4) > 0;
            return new RateLimitResult(number(answer, 0) > 0, limited ? number(answer, 1) : -1, (number(answer, 2) + 999) / 1000);
        } finally {
            connection.close();
        }
    }

    private static long number(List<?> answer, int at) {
        return (Long) answer.get(at);
    }

    private static byte[] bytes(String word) {
        return word.getBytes(StandardCharsets.UTF_8);
    }
}
