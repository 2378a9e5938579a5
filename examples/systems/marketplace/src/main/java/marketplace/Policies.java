package marketplace;

import jakarta.annotation.PostConstruct;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.springframework.stereotype.Component;

/** Sets weir's policies from application.yml when the application starts. Used units stay used. */
@Component
public class Policies {
    /** Failed logins: attempts 4 and 5 answer 2 s later, 6 to 10 answer 5 s later, the eleventh locks for 15 minutes. */
    static final String LOCKOUT = "lockout";
    static final int LOCKED_AT = 11;
    static final int CAPTCHA_FROM = 6;

    private final Weir weir;
    private final RateLimit config;

    Policies(Weir weir, RateLimit config) {
        this.weir = weir;
        this.config = config;
    }

    @PostConstruct
    void apply() {
        String prefix = config.redisKeyPrefix();
        for (Endpoint endpoint : Endpoint.values()) {
            RateLimit.Tier tier = config.tiers().get(endpoint.tier);
            set(endpoint.policy, tier.limit(), "LAYOUT " + prefix + ":" + endpoint.key + ":{key}", "REPORT " + tier.window().toMillis() + "ms");
        }
        set(LOCKOUT, "STRIKE 15m 4 DELAY 2s 6 DELAY 5s " + LOCKED_AT + " 15m ATTEMPTS", "LAYOUT " + prefix + ":auth:fail:{key}");
        set("lockout-notice", "FIXED 5m 1 FIRST");

        RateLimit.Business business = config.business();
        set("channel-deals", "SLIDING 1d " + business.maxDealsPerChannelPerDay());
        set("user-disputes", "SLIDING 1w " + business.maxDisputesPerUserPerWeek());
        set("counter-offers", "FIXED FOREVER " + business.maxCounterOffersPerNegotiation());

        RateLimit.Outbound outbound = config.outbound();
        set("ton-api", "LEAKYBUCKET " + outbound.tonApiRate().stripTrailingZeros().toPlainString() + "/s 600");
        set("bot", "SLIDING 1s " + outbound.botMessagesPerSecond());
        set("bot-chat", "SLIDING 1s " + outbound.botMessagesPerChatPerSecond());
        set("bot-group", "SLIDING 1m " + outbound.botMessagesPerGroupPerMinute());
    }

    private void set(String policy, String limit, String... more) {
        List<String> words = new ArrayList<>(List.of("RL.POLICY", "SET", policy, "LIMIT"));
        words.addAll(Arrays.asList(limit.split(" ")));
        for (String term : more) {
            words.addAll(Arrays.asList(term.split(" ")));
        }
        weir.number(words);
    }
}
