import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.Socket;
import java.net.URL;
import java.util.List;
import java.util.Random;
import java.util.function.Supplier;
import org.springframework.cloud.gateway.filter.ratelimit.RedisRateLimiter;
import org.springframework.cloud.gateway.support.ConfigurationService;
import org.springframework.core.io.ClassPathResource;
import org.springframework.core.io.Resource;
import org.springframework.core.io.UrlResource;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;
import org.springframework.data.redis.core.script.DefaultRedisScript;

/**
 * Lets Spring Cloud Gateway say the same again: random calls from a seed, while the server's clock
 * goes on. limiters_test.go says how it is called; every answer is one line. "spring" is the
 * gateway's RedisRateLimiter; "spring-3.1.4" sends what that release sends, with its own text.
 */
public class Drive {
  static final String TEXT = "META-INF/scripts/request_rate_limiter.lua";
  static Random random;
  static ReactiveStringRedisTemplate redis;

  public static void main(String[] args) throws Exception {
    int port = Integer.parseInt(args[1]), calls = Integer.parseInt(args[3]);
    random = new Random(Long.parseLong(args[2]));
    var factory = new LettuceConnectionFactory("127.0.0.1", port);
    factory.afterPropertiesSet();
    factory.start();
    redis = new ReactiveStringRedisTemplate(factory);
    Supplier<Object> call = args[0].equals("spring") ? gateway() : release(args[0].substring("spring-".length()));
    try (var clock = new Socket("127.0.0.1", port)) {
      var replies = new BufferedReader(new InputStreamReader(clock.getInputStream()));
      for (int i = 0; i < calls; i++) {
        int ms = random.nextInt(1 + random.nextInt(1200));
        clock.getOutputStream().write(("DEBUG CLOCK ADVANCE " + ms + "\r\n").getBytes());
        if (!"+OK".equals(replies.readLine())) throw new IllegalStateException("the clock stands");
        System.out.println(call.get());
      }
    }
    System.exit(0);
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  static DefaultRedisScript<List<Long>> script(Resource text) {
    var script = new DefaultRedisScript();
    script.setLocation(text);
    script.setResultType(List.class);
    return script;
  }

  static Supplier<Object> gateway() {
    var limiter = new RedisRateLimiter(redis, script(new ClassPathResource(TEXT)), new ConfigurationService(null, () -> null, () -> null));
    for (int i = 0; i < 4; i++) {
      limiter.getConfig().put("route" + i, new RedisRateLimiter.Config()
          .setReplenishRate(1 + random.nextInt(9)).setBurstCapacity(10 + random.nextInt(20)).setRequestedTokens(1 + random.nextInt(4)));
    }
    return () -> {
      String route = "route" + random.nextInt(4), id = "id" + random.nextInt(2);
      var answer = limiter.isAllowed(route, id).block();
      String key = "request_rate_limiter.{" + route + "." + id + "}.tokens";
      return answer + " " + redis.getExpire(key).blockOptional().orElse(null);
    };
  }

  static Supplier<Object> release(String version) {
    try {
      var script = script(new UrlResource(new URL("jar:file:target/texts/" + version + ".jar!/" + TEXT)));
      long[] now = {1_790_000_000L};
      return () -> {
        now[0] += random.nextInt(5) - 1;
        String key = "k" + random.nextInt(3), time = version.startsWith("4") && random.nextInt(2) == 0 ? "" : "" + now[0];
        var argv = List.of("" + (1 + random.nextInt(9)), "" + (5 + random.nextInt(20)), time, "" + random.nextInt(5));
        return redis.execute(script, List.of(key + ".tokens", key + ".timestamp"), argv).collectList().block();
      };
    } catch (java.net.MalformedURLException e) {
      throw new IllegalArgumentException(e);
    }
  }
}
