package gateway;

import io.micrometer.core.instrument.MeterRegistry;
import org.springframework.cloud.gateway.filter.GatewayFilterChain;
import org.springframework.cloud.gateway.filter.GlobalFilter;
import org.springframework.core.Ordered;
import org.springframework.http.HttpStatusCode;
import org.springframework.stereotype.Component;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/** Counts answers by status and route, as gateway_request_total at /actuator/prometheus. */
@Component
public class RequestMetricsFilter implements GlobalFilter, Ordered {
    private final MeterRegistry registry;

    public RequestMetricsFilter(MeterRegistry registry) {
        this.registry = registry;
    }

    @Override
    public int getOrder() {
        return 5;
    }

    @Override
    public Mono<Void> filter(ServerWebExchange exchange, GatewayFilterChain chain) {
        return chain.filter(exchange).doFinally(end -> {
            HttpStatusCode status = exchange.getResponse().getStatusCode();
            String path = exchange.getRequiredAttribute(RouteAttributesFilter.ROUTE_PATH);
            registry.counter("gateway.request", "status", status == null ? "none" : Integer.toString(status.value()), "route_path", path)
                    .increment();
        });
    }
}
