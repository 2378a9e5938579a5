import io.github.bucket4j.BucketConfiguration;
import io.github.bucket4j.ConsumptionProbe;
import io.github.bucket4j.distributed.BucketProxy;
import io.github.bucket4j.distributed.ExpirationAfterWriteStrategy;
import io.github.bucket4j.distributed.proxy.ProxyManager;
import io.github.bucket4j.redis.lettuce.Bucket4jLettuce;
import io.lettuce.core.RedisClient;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Spends the tokens of one bucket from several threads: Spend address expires capacity threads.
 * Each thread goes on until it is denied. It says HALF when half of them are spent, and in the
 * end how many were given, how many calls failed, and the most that a probe said was left.
 */
class Spend {
  public static void main(String[] args) throws Exception {
    boolean expires = Boolean.parseBoolean(args[1]);
    int capacity = Integer.parseInt(args[2]);
    RedisClient client = RedisClient.create("redis://" + args[0]);
    var builder = Bucket4jLettuce.casBasedBuilder(client);
    if (expires) {
      builder = builder.expirationAfterWrite(
          ExpirationAfterWriteStrategy.basedOnTimeForRefillingBucketUpToMax(Duration.ofMinutes(5)));
    }
    ProxyManager<byte[]> buckets = builder.build();
    BucketConfiguration limit = BucketConfiguration.builder()
        .addLimit(l -> l.capacity(capacity).refillIntervally(capacity, Duration.ofDays(1)))
        .build();
    BucketProxy bucket = buckets.builder().build("rate-limit:spend".getBytes(StandardCharsets.UTF_8), () -> limit);

    AtomicInteger given = new AtomicInteger(), failed = new AtomicInteger();
    AtomicBoolean half = new AtomicBoolean(), wrong = new AtomicBoolean();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < Integer.parseInt(args[3]); i++) {
      Thread thread = new Thread(() -> {
        for (;;) {
          ConsumptionProbe probe;
          try {
            probe = bucket.tryConsumeAndReturnRemaining(1);
          } catch (RuntimeException e) {
            failed.incrementAndGet();
            continue;
          }
          if (!probe.isConsumed()) {
            return;
          }
          if (probe.getRemainingTokens() < 0 || probe.getRemainingTokens() >= capacity) {
            wrong.set(true);
          }
          if (given.incrementAndGet() >= capacity / 2 && half.compareAndSet(false, true)) {
            System.out.println("HALF");
          }
        }
      });
      threads.add(thread);
      thread.start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    System.out.println("given " + given + " failed " + failed + " wrong " + wrong);
    client.shutdown();
  }
}
