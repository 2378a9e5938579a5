package marketplace;

import io.micrometer.core.instrument.MeterRegistry;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.springframework.core.annotation.Order;
import org.springframework.stereotype.Component;
import org.springframework.web.filter.OncePerRequestFilter;

/** Limits requests by the tier of their endpoint and by the global tier of their user, in one check. */
@Component
@Order(2)
public class TierFilter extends OncePerRequestFilter {
    private final Weir weir;
    private final RateLimit config;
    private final Sessions sessions;
    private final MeterRegistry metrics;

    TierFilter(Weir weir, RateLimit config, Sessions sessions, MeterRegistry metrics) {
        this.weir = weir;
        this.config = config;
        this.sessions = sessions;
        this.metrics = metrics;
    }

    @Override
    protected boolean shouldNotFilter(HttpServletRequest request) {
        return !request.getServletPath().startsWith("/api/v1/");
    }

    @Override
    protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        Endpoint endpoint = Endpoint.of(request);
        String user = sessions.userOf(request);
        if (user == null && endpoint != Endpoint.AUTH) {
            Problem.send(response, Problem.of(401, "not-logged-in", "Not Logged In", "POST /api/v1/auth/validate gives a token"));
            return;
        }
        if (config.enabled() && !admit(endpoint, user, request, response)) {
            return;
        }
        chain.doFilter(request, response);
    }

    private boolean admit(Endpoint endpoint, String user, HttpServletRequest request, HttpServletResponse response) throws IOException {
        Weir.Decision d;
        try {
            d = decide(endpoint, user, request);
        } catch (Weir.Unavailable e) {
            unavailable(response);
            return false;
        }
        count("ratelimit.requests.total", endpoint);
        response.setHeader("X-RateLimit-Limit", Long.toString(d.limit()));
        response.setHeader("X-RateLimit-Remaining", Long.toString(d.remaining()));
        if (d.resetAfter() != null) {
            long resetMs = System.currentTimeMillis() + d.resetAfter().toMillis();
            response.setHeader("X-RateLimit-Reset", Long.toString((resetMs + 999) / 1000));
        }
        if (d.allowed()) {
            return true;
        }
        count("ratelimit.requests.limited", endpoint);
        if (d.retryAfter() != null) {
            response.setHeader("Retry-After", Long.toString(Problem.seconds(d.retryAfter())));
        }
        String detail = config.tiers().get(Endpoint.ofPolicy(d.name()).tier).detail();
        Problem.send(response, Problem.limited(detail, d.retryAfter()));
        return false;
    }

    private Weir.Decision decide(Endpoint endpoint, String user, HttpServletRequest request) {
        String address = request.getRemoteAddr();
        return switch (endpoint) {
            case AUTH -> weir.check(address, endpoint.policy, ClientAddress.of(request));
            case GLOBAL -> weir.check(address, endpoint.policy, user);
            default -> weir.check(address, endpoint.policy, user, Endpoint.GLOBAL.policy, user);
        };
    }

    private void count(String name, Endpoint endpoint) {
        metrics.counter(name, "tier", endpoint.tier, "endpoint", endpoint.policy).increment();
    }

    /**
     * Refuses a request that weir could not decide. The document does not say what happens without the store, and
     * attackers must not get through without limits.
     */
    static void unavailable(HttpServletResponse response) throws IOException {
        response.setHeader("Retry-After", "1");
        Problem.send(response, Problem.of(503, "unavailable", "Service Unavailable", "Limits cannot be checked"));
    }
}
