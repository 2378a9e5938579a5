package gateway;

import java.util.Map;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.springframework.cloud.gateway.filter.GatewayFilterChain;
import org.springframework.cloud.gateway.filter.GlobalFilter;
import org.springframework.cloud.gateway.route.Route;
import org.springframework.cloud.gateway.support.ServerWebExchangeUtils;
import org.springframework.core.Ordered;
import org.springframework.stereotype.Component;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/** Sets the attributes of a request that later filters need. */
@Component
public class RouteAttributesFilter implements GlobalFilter, Ordered {
    public static final String ROUTE_ID = "gateway.routeId";
    public static final String ROUTE_PATH = "gateway.routePath";
    public static final String RATE_LIMIT = "gateway.rateLimit";
    public static final String CORRELATION_ID = "gateway.correlationId";
    private static final String CORRELATION_HEADER = "X-Correlation-Id";
    /** With longer ones, a client could fill the logs. */
    private static final int MAX_CORRELATION_ID = 64;

    private final Map<UUID, RouteProperties.Route> routes;

    public RouteAttributesFilter(RouteProperties properties) {
        routes = properties.routes().stream().collect(Collectors.toMap(RouteProperties.Route::id, Function.identity()));
    }

    @Override
    public int getOrder() {
        return 0;
    }

    @Override
    public Mono<Void> filter(ServerWebExchange exchange, GatewayFilterChain chain) {
        Route matched = exchange.getRequiredAttribute(ServerWebExchangeUtils.GATEWAY_ROUTE_ATTR);
        RouteProperties.Route route = routes.get(UUID.fromString(matched.getId()));
        exchange.getAttributes().put(ROUTE_ID, route.id());
        exchange.getAttributes().put(ROUTE_PATH, route.path());
        if (route.rateLimit() != null) {
            exchange.getAttributes().put(RATE_LIMIT, route.rateLimit());
        }
        String given = exchange.getRequest().getHeaders().getFirst(CORRELATION_HEADER);
        boolean usable = given != null && !given.isBlank() && given.length() <= MAX_CORRELATION_ID;
        exchange.getAttributes().put(CORRELATION_ID, usable ? given : UUID.randomUUID().toString());
        return chain.filter(exchange);
    }
}
