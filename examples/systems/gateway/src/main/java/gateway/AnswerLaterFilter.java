package gateway;

import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.stereotype.Component;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * Answers no request within the call that delivers it. Reactor Netty (seen with 1.2.6, 1.2.18 and 1.3.7) otherwise may
 * read nothing more from a kept connection: https://github.com/reactor/reactor-netty/issues/4361. The limiter of this
 * process answers in that call while the store is not reached.
 */
@Component
@Order(Ordered.HIGHEST_PRECEDENCE)
public class AnswerLaterFilter implements WebFilter {
    @Override
    public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
        return chain.filter(exchange).subscribeOn(Schedulers.parallel());
    }
}
