package gateway;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class LocalRateLimiterTest {
    private final AtomicLong nowMs = new AtomicLong(1_000_000);
    private final LocalRateLimiter local =
            new LocalRateLimiter(new RateLimitProperties(true, 0.5, 60, "ratelimit", 120, List.of(), null, null), nowMs::get);

    private int allowed(String key, int rate, int burst) {
        int n = 0;
        for (int i = 0; i < 100; i++) {
            n += local.checkRateLimit(key, rate, burst).allowed() ? 1 : 0;
        }
        return n;
    }

    @Test
    void halfOfTheLimit() {
        assertThat(allowed("a", 10, 15)).isEqualTo(7);
        nowMs.addAndGet(1000);
        assertThat(allowed("a", 10, 15)).isEqualTo(5);
    }

    @Test
    void atLeastOne() {
        assertThat(allowed("b", 1, 1)).isEqualTo(1);
        nowMs.addAndGet(1000);
        assertThat(allowed("b", 1, 1)).isEqualTo(1);
    }

    @Test
    void aBucketThatNobodyUsesGoesAfterAMinute() {
        assertThat(allowed("c", 1, 240)).isEqualTo(100);
        assertThat(allowed("c", 1, 240)).isEqualTo(20);
        nowMs.addAndGet(59_000);
        assertThat(allowed("c", 1, 240)).isEqualTo(59);
        nowMs.addAndGet(60_000);
        assertThat(allowed("c", 1, 240)).isEqualTo(100);
    }
}
