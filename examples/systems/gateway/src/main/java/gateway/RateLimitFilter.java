package gateway;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.UUID;
import org.springframework.cloud.gateway.filter.GatewayFilterChain;
import org.springframework.cloud.gateway.filter.GlobalFilter;
import org.springframework.core.Ordered;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.stereotype.Component;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/** Takes a token for each request of a route with a limit, and answers 429 if the bucket has none. */
@Component
public class RateLimitFilter implements GlobalFilter, Ordered {
    private static final String TYPE = "https://api.gateway/errors/rate-limit-exceeded";

    private final RateLimitService service;
    private final ClientAddresses clients;
    private final ObjectMapper json;

    public RateLimitFilter(RateLimitService service, ClientAddresses clients, ObjectMapper json) {
        this.service = service;
        this.clients = clients;
        this.json = json;
    }

    @Override
    public int getOrder() {
        return 10;
    }

    @Override
    public Mono<Void> filter(ServerWebExchange exchange, GatewayFilterChain chain) {
        UUID routeId = exchange.getAttribute(RouteAttributesFilter.ROUTE_ID);
        RateLimit limit = exchange.getAttribute(RouteAttributesFilter.RATE_LIMIT);
        if (routeId == null || limit == null) {
            return chain.filter(exchange);
        }
        return service.checkRateLimit(routeId, clients.of(exchange.getRequest()), limit).flatMap(result -> {
            HttpHeaders headers = exchange.getResponse().getHeaders();
            headers.set("X-RateLimit-Limit", Integer.toString(limit.requestsPerSecond()));
            headers.set("X-RateLimit-Remaining", Integer.toString(result.remaining()));
            headers.set("X-RateLimit-Reset", Long.toString((result.resetTime() + 999) / 1000));
            return result.allowed() ? chain.filter(exchange) : reject(exchange, result);
        });
    }

    private Mono<Void> reject(ServerWebExchange exchange, RateLimitResult result) {
        long seconds = Math.max(1, (result.resetTime() - System.currentTimeMillis() + 999) / 1000);
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("type", TYPE);
        body.put("title", HttpStatus.TOO_MANY_REQUESTS.getReasonPhrase());
        body.put("status", HttpStatus.TOO_MANY_REQUESTS.value());
        body.put("detail", "Rate limit exceeded. Try again in " + seconds + (seconds == 1 ? " second." : " seconds."));
        body.put("correlationId", exchange.getAttribute(RouteAttributesFilter.CORRELATION_ID));
        ServerHttpResponse response = exchange.getResponse();
        response.setStatusCode(HttpStatus.TOO_MANY_REQUESTS);
        response.getHeaders().setContentType(MediaType.APPLICATION_JSON);
        response.getHeaders().set(HttpHeaders.RETRY_AFTER, Long.toString(seconds));
        return response.writeWith(Mono.fromSupplier(() -> response.bufferFactory().wrap(write(body))));
    }

    private byte[] write(Map<String, Object> body) {
        try {
            return json.writeValueAsString(body).getBytes(StandardCharsets.UTF_8);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }
}
