package gateway;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.resource.Delay;
import java.time.Duration;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.data.redis.ClientResourcesBuilderCustomizer;
import org.springframework.boot.autoconfigure.data.redis.LettuceClientOptionsBuilderCustomizer;
import org.springframework.boot.context.properties.ConfigurationPropertiesScan;
import org.springframework.cloud.gateway.route.RouteLocator;
import org.springframework.cloud.gateway.route.builder.RouteLocatorBuilder;
import org.springframework.context.annotation.Bean;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.ReactiveStringRedisTemplate;

@SpringBootApplication
@ConfigurationPropertiesScan
public class GatewayApplication {
    public static void main(String[] args) {
        SpringApplication.run(GatewayApplication.class, args);
    }

    @Bean
    RouteLocator routes(RouteLocatorBuilder builder, RouteProperties properties) {
        RouteLocatorBuilder.Builder routes = builder.routes();
        for (RouteProperties.Route route : properties.routes()) {
            routes = routes.route(route.id().toString(), r -> r.path(route.path()).uri(route.uri()));
        }
        return routes.build();
    }

    /** Selects how the service counts: with the script, or with one command of weir instead. */
    @Bean
    TokenBucket tokenBucket(RateLimitProperties properties, ReactiveStringRedisTemplate redis, LettuceConnectionFactory connections) {
        return switch (properties.command()) {
            case SCRIPT -> new TokenBucketScript(redis, properties.script());
            case TOKENBUCKET -> new TokenBucketCommand(connections);
        };
    }

    /** While the store is not reached, a request fails at once. It does not wait for a new connection. */
    @Bean
    LettuceClientOptionsBuilderCustomizer failAtOnce() {
        return options -> options.disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS);
    }

    @Bean
    ClientResourcesBuilderCustomizer reconnectSoon() {
        return resources -> resources.reconnectDelay(Delay.constant(Duration.ofMillis(200)));
    }
}
