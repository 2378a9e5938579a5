package marketplace;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.Map;
import org.springframework.boot.context.properties.ConfigurationProperties;

/** The section rate-limit of application.yml. */
@ConfigurationProperties("rate-limit")
public record RateLimit(boolean enabled, String redisKeyPrefix, Map<String, Tier> tiers, Business business, Outbound outbound) {

    /** The number of requests in a window, and a burst. */
    public record Tier(int rate, int burst, Duration window) {
        String limit() {
            return "TOKENBUCKET " + rate + "/" + window.toMillis() + "ms " + burst;
        }

        String detail() {
            String per = window.equals(Duration.ofMinutes(1)) ? "minute" : window.toSeconds() + " seconds";
            return "You have exceeded the rate limit of " + rate + " requests per " + per;
        }
    }

    public record Business(int maxActiveDealsPerAdvertiser, int maxDealsPerChannelPerDay, int maxDisputesPerUserPerWeek,
            int maxCounterOffersPerNegotiation) { }

    public record Outbound(BigDecimal tonApiRate, int botMessagesPerSecond, int botMessagesPerChatPerSecond,
            int botMessagesPerGroupPerMinute) { }
}
