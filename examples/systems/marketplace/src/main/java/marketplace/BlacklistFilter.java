package marketplace;

import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import org.springframework.core.annotation.Order;
import org.springframework.stereotype.Component;
import org.springframework.web.filter.OncePerRequestFilter;

/** Refuses the addresses in the set rl:blacklist:ip, in emergencies. rate-limit.enabled=false does not stop it. */
@Component
@Order(1)
public class BlacklistFilter extends OncePerRequestFilter {
    private final Weir weir;
    private final String key;

    BlacklistFilter(Weir weir, RateLimit config) {
        this.weir = weir;
        this.key = config.redisKeyPrefix() + ":blacklist:ip";
    }

    @Override
    protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        boolean listed;
        try {
            listed = weir.onSomeNode(c -> c.sync().sismember(key, request.getRemoteAddr()));
        } catch (Weir.Unavailable e) {
            TierFilter.unavailable(response);
            return;
        }
        if (listed) {
            Problem.send(response, Problem.of(403, "address-blocked", "Address Blocked", "Requests from this address are not served"));
            return;
        }
        chain.doFilter(request, response);
    }
}
