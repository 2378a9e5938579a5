package gateway;

import java.util.List;
import java.util.UUID;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/** The routes, each with or without a limit. */
@ConfigurationProperties("gateway")
public record RouteProperties(@DefaultValue List<Route> routes) {

    public record Route(UUID id, String path, String uri, RateLimit rateLimit) {}
}
