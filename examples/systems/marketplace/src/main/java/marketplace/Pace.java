package marketplace;

import java.io.IOException;
import java.time.Duration;
import org.springframework.stereotype.Component;

/** Delays calls to other APIs until weir admits them. */
@Component
public class Pace {
    private static final Duration LONGEST = Duration.ofMinutes(2);

    private final Weir weir;

    Pace(Weir weir) {
        this.weir = weir;
    }

    /** Blocks until all policies admit their keys, like acquire of Guava's RateLimiter. */
    void acquire(String... policiesAndKeys) throws IOException {
        long end = System.nanoTime() + LONGEST.toNanos();
        while (true) {
            Weir.Decision d = weir.check(null, policiesAndKeys);
            if (d.allowed()) {
                Weir.pause(d.retryAfter()); // until its turn
                return;
            }
            if (d.retryAfter() == null || System.nanoTime() + d.retryAfter().toNanos() > end) {
                throw new IOException("no permit of " + d.name() + " within " + LONGEST);
            }
            Weir.pause(d.retryAfter());
        }
    }
}
