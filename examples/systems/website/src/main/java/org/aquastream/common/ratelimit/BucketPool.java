package org.aquastream.common.ratelimit;

import io.github.bucket4j.distributed.ExpirationAfterWriteStrategy;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce.LettuceBasedProxyManagerBuilder;
import io.lettuce.core.RedisClient;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.cluster.api.StatefulRedisClusterConnection;
import io.lettuce.core.codec.ByteArrayCodec;
import io.lettuce.core.codec.RedisCodec;
import io.lettuce.core.codec.StringCodec;
import jakarta.annotation.PreDestroy;
import java.time.Duration;
import java.util.Optional;
import java.util.function.Function;
import org.apache.commons.pool2.BasePooledObjectFactory;
import org.apache.commons.pool2.PooledObject;
import org.apache.commons.pool2.impl.DefaultPooledObject;
import org.apache.commons.pool2.impl.GenericObjectPool;
import org.apache.commons.pool2.impl.GenericObjectPoolConfig;
import org.springframework.boot.autoconfigure.data.redis.RedisProperties;
import org.springframework.context.annotation.Profile;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.stereotype.Component;

/** A pool of Lettuce connections with the settings of spring.data.redis. Each has its own Bucket4j manager. */
@Component
@Profile("!policies")
public class BucketPool {
    private static final RedisCodec<String, byte[]> CODEC = RedisCodec.of(StringCodec.UTF8, ByteArrayCodec.INSTANCE);
    /** A bucket stays in the store until it is full again, and for this time longer. */
    private static final Duration KEPT = Duration.ofSeconds(10);

    private final GenericObjectPool<Slot> pool;

    public BucketPool(LettuceConnectionFactory lettuce, RedisProperties redis) {
        GenericObjectPoolConfig<Slot> sizes = new GenericObjectPoolConfig<>();
        RedisProperties.Pool wanted = redis.getLettuce().getPool();
        sizes.setMaxTotal(wanted.getMaxActive());
        sizes.setMaxIdle(wanted.getMaxIdle());
        sizes.setMinIdle(wanted.getMinIdle());
        sizes.setMaxWait(Optional.ofNullable(redis.getTimeout()).orElse(Duration.ofSeconds(2)));
        pool = new GenericObjectPool<>(new Connector(lettuce, sizes.getMaxWaitDuration()), sizes);
    }

    <T> T use(Function<ProxyManager<String>, T> call) throws Exception {
        Slot slot = pool.borrowObject();
        try {
            return call.apply(slot.buckets);
        } finally {
            pool.returnObject(slot);
        }
    }

    @PreDestroy
    void close() {
        pool.close();
    }

    private record Slot(StatefulConnection<String, byte[]> connection, ProxyManager<String> buckets) {}

    private static class Connector extends BasePooledObjectFactory<Slot> {
        private final LettuceConnectionFactory lettuce;
        private final Duration timeout;

        Connector(LettuceConnectionFactory lettuce, Duration timeout) {
            this.lettuce = lettuce;
            this.timeout = timeout;
        }

        @Override
        public Slot create() {
            if (lettuce.getRequiredNativeClient() instanceof RedisClusterClient cluster) {
                StatefulRedisClusterConnection<String, byte[]> connection = cluster.connect(CODEC);
                return new Slot(connection, built(Bucket4jLettuce.casBasedBuilder(connection)));
            }
            StatefulRedisConnection<String, byte[]> connection = ((RedisClient) lettuce.getRequiredNativeClient()).connect(CODEC);
            return new Slot(connection, built(Bucket4jLettuce.casBasedBuilder(connection)));
        }

        private ProxyManager<String> built(LettuceBasedProxyManagerBuilder<String> builder) {
            return builder.requestTimeout(timeout)
                    .expirationAfterWrite(ExpirationAfterWriteStrategy.basedOnTimeForRefillingBucketUpToMax(KEPT))
                    .build();
        }

        @Override
        public PooledObject<Slot> wrap(Slot slot) {
            return new DefaultPooledObject<>(slot);
        }

        @Override
        public boolean validateObject(PooledObject<Slot> pooled) {
            return pooled.getObject().connection.isOpen();
        }

        @Override
        public void destroyObject(PooledObject<Slot> pooled) {
            pooled.getObject().connection.close();
        }
    }
}
