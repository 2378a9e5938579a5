package example;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import java.net.URI;
import java.time.Duration;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.web.context.WebServerInitializedEvent;
import org.springframework.context.annotation.Bean;
import org.springframework.context.event.EventListener;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

@SpringBootApplication
@RestController
public class Application {
    private static final Logger LOG = LoggerFactory.getLogger(Application.class);

    /** A request waits at most TIMEOUT_MS for weir. The client never sends it again. */
    @Bean(destroyMethod = "shutdown")
    RedisClient weir() {
        RedisURI uri = RedisURI.create("redis://" + System.getenv().getOrDefault("WEIR", "127.0.0.1:6380"));
        uri.setTimeout(Duration.ofMillis(Long.parseLong(System.getenv().getOrDefault("TIMEOUT_MS", "100"))));
        RedisClient client = RedisClient.create(uri);
        client.setOptions(ClientOptions.builder()
                .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .cancelCommandsOnReconnectFailure(true)
                .socketOptions(SocketOptions.builder().connectTimeout(uri.getTimeout()).build())
                .build());
        return client;
    }

    @Bean
    LimitFilter limit(RedisClient weir) {
        return new LimitFilter(weir, "api");
    }

    @GetMapping("/")
    String hello() {
        return "hello";
    }

    @EventListener
    void listening(WebServerInitializedEvent event) {
        String host = event.getApplicationContext().getEnvironment().getProperty("server.address");
        LOG.info("listening on http://{}:{}", host, event.getWebServer().getPort());
    }

    public static void main(String[] args) {
        URI listen = URI.create("http://" + System.getenv().getOrDefault("LISTEN", "127.0.0.1:8080"));
        SpringApplication application = new SpringApplication(Application.class);
        application.setDefaultProperties(Map.of("server.address", listen.getHost(), "server.port", listen.getPort()));
        application.run(args);
    }
}
