package org.aquastream.common.ratelimit;

import com.fasterxml.jackson.databind.ObjectMapper;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Instant;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Pattern;
import org.aquastream.common.ratelimit.RateLimiter.RateLimitResult;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.stereotype.Component;
import org.springframework.web.filter.OncePerRequestFilter;

/** Checks the limit of each request before the website serves it. */
@Component
@Order(Ordered.HIGHEST_PRECEDENCE)
public class RateLimitFilter extends OncePerRequestFilter {
    private static final Logger LOG = LoggerFactory.getLogger(RateLimitFilter.class);

    private static final Pattern LOGIN_PATTERN = pattern("login|auth|signin");
    private static final Pattern RECOVERY_PATTERN = pattern("recovery|reset|forgot");
    private static final Pattern PAYMENT_PATTERN = pattern("payments");
    private static final List<String> EXCLUDED =
            List.of("/actuator/", "/health", "/metrics", "/static/", "/css/", "/js/", "/images/");

    private static final String PROBLEM = "https://aquastream.org/problems/rate-limit-exceeded";
    private static final DateTimeFormatter MILLIS = new DateTimeFormatterBuilder().appendInstant(3).toFormatter();

    /** One line a minute says that the store is busy. */
    private static final long BUSY_QUIET_MS = 60_000;

    private final RateLimitProperties properties;
    private final RateLimiter limits;
    private final ClientKeys clients;
    private final ObjectMapper json;
    private final StoreProbe store;
    private final AtomicBoolean down = new AtomicBoolean();
    private final AtomicLong saidBusyMs = new AtomicLong();

    public RateLimitFilter(RateLimitProperties properties, RateLimiter limits, ClientKeys clients, ObjectMapper json, StoreProbe store) {
        this.store = store;
        this.properties = properties;
        this.limits = limits;
        this.clients = clients;
        this.json = json;
    }

    @Override
    protected boolean shouldNotFilter(HttpServletRequest request) {
        return !properties.isEnabled() || shouldSkipRateLimit(request);
    }

    private static boolean shouldSkipRateLimit(HttpServletRequest request) {
        String path = pathOf(request);
        return EXCLUDED.stream().anyMatch(path::startsWith) || "OPTIONS".equals(request.getMethod());
    }

    @Override
    protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        String client = clients.getClientKey(request);
        String limit = determineLimitKey(request);
        RateLimitResult result = check(client, limit);
        if (result == null) {
            response.setHeader("Retry-After", "1");
            response.sendError(HttpStatus.SERVICE_UNAVAILABLE.value());
            return;
        }
        if (result.remainingTokens() >= 0) {
            response.setHeader("X-RateLimit-Remaining", Long.toString(result.remainingTokens()));
        }
        if (result.allowed()) {
            chain.doFilter(request, response);
            return;
        }
        LOG.warn("Rate limit exceeded - Client: {}, Endpoint: {} {}, Limit: {}, Retry after: {}s",
                client, request.getMethod(), request.getRequestURI(), limit, result.retryAfterSeconds());
        refuse(response, limit, result.retryAfterSeconds());
    }

    private String determineLimitKey(HttpServletRequest request) {
        String path = pathOf(request);
        if (LOGIN_PATTERN.matcher(path).matches()) {
            return "login";
        }
        if (RECOVERY_PATTERN.matcher(path).matches()) {
            return "recovery";
        }
        if (properties.has("payment") && PAYMENT_PATTERN.matcher(path).matches()) {
            return "payment";
        }
        return "default";
    }

    /**
     * Logs the loss of the store once, and its return once. Returns null if a request must not pass: while the store is
     * busy, or without fail-open.
     */
    private RateLimitResult check(String client, String limit) {
        try {
            RateLimitResult result = limits.checkLimit(client, limit);
            if (down.compareAndSet(true, false)) {
                LOG.warn("The store of the limits is reached again");
            }
            return result;
        } catch (Exception e) {
            if (!store.isDown(e)) {
                long nowMs = System.currentTimeMillis();
                long saidMs = saidBusyMs.get();
                if (nowMs - saidMs >= BUSY_QUIET_MS && saidBusyMs.compareAndSet(saidMs, nowMs)) {
                    LOG.error("The store of the limits is busy: requests that it does not decide get 503", e);
                }
                return null;
            }
            if (down.compareAndSet(false, true)) {
                LOG.error("The store of the limits is not reached: requests {}", properties.isFailOpen() ? "pass" : "get 503", e);
            }
            return properties.isFailOpen() ? RateLimitResult.UNLIMITED : null;
        }
    }

    private void refuse(HttpServletResponse response, String limit, long retryAfter) throws IOException {
        Map<String, Object> problem = new LinkedHashMap<>();
        problem.put("type", PROBLEM);
        problem.put("title", "Too Many Requests");
        problem.put("status", HttpStatus.TOO_MANY_REQUESTS.value());
        problem.put("detail", "Rate limit exceeded for %s requests. Please retry after %d seconds.".formatted(limit, retryAfter));
        problem.put("limitType", limit);
        problem.put("retryAfter", retryAfter);
        problem.put("timestamp", MILLIS.format(Instant.now()));
        response.setStatus(HttpStatus.TOO_MANY_REQUESTS.value());
        response.setContentType(MediaType.APPLICATION_PROBLEM_JSON_VALUE);
        response.setHeader("Retry-After", Long.toString(retryAfter));
        response.setHeader("X-RateLimit-Remaining", "0");
        response.getOutputStream().write(json.writeValueAsBytes(problem));
    }

    /** Returns the decoded path without dot segments and parameters, so that no spelling avoids a limit. */
    private static String pathOf(HttpServletRequest request) {
        return request.getServletPath() + (request.getPathInfo() == null ? "" : request.getPathInfo());
    }

    /** Returns a pattern for any path with one of the words behind a slash: **&#47;login**. */
    private static Pattern pattern(String words) {
        return Pattern.compile(".*/(" + words + ").*", Pattern.DOTALL);
    }
}
