package marketplace;

import jakarta.annotation.PostConstruct;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** Sets weir's policies from application.yml when the application starts. Used units stay used. */
@Component
public class Policies {
    /**
     * Failed logins of an account from one address: attempts 4 and 5 answer 2 s later, 6 to 10 answer 5 s later, the
     * eleventh locks the account for this address for 15 minutes.
     */
    static final String LOCKOUT = "lockout";
    static final int LOCKED_AT = 11;
    static final int CAPTCHA_FROM = 6;
    /** Failed logins of an account from all addresses. This many lock it for clients that never logged in to it. */
    static final String LOCKOUT_ACCOUNT = "lockout-account";
    static final int ACCOUNT_LOCKED_AT = 50;

    private static final Logger LOG = LoggerFactory.getLogger(Policies.class);

    private final Weir weir;
    private final RateLimit config;
    private final Duration start;

    Policies(Weir weir, RateLimit config, @Value("${weir-start}") Duration start) {
        this.weir = weir;
        this.config = config;
        this.start = start;
    }

    /** Sets the policies. Tries again while weir does not decide yet, for example because it still starts. */
    @PostConstruct
    void applyWhenReady() {
        long end = System.nanoTime() + start.toNanos();
        while (true) {
            try {
                apply();
                return;
            } catch (Weir.Unavailable e) {
                if (System.nanoTime() > end) {
                    throw new IllegalStateException("weir took no policies within " + start.toSeconds()
                            + " s: start weir, or set WEIR to its addresses", e);
                }
                LOG.warn("weir does not decide yet: trying for {} s before giving up", start.toSeconds());
            }
        }
    }

    private void apply() {
        String prefix = config.redisKeyPrefix();
        for (Endpoint endpoint : Endpoint.values()) {
            RateLimit.Tier tier = config.tiers().get(endpoint.tier);
            set(endpoint.policy, tier.limit(), "LAYOUT " + prefix + ":" + endpoint.key + ":{key}", "REPORT " + tier.window().toMillis() + "ms");
        }
        set(LOCKOUT, "STRIKE 15m 4 DELAY 2s 6 DELAY 5s " + LOCKED_AT + " 15m ATTEMPTS", "LAYOUT " + prefix + ":auth:from:{key}");
        set(LOCKOUT_ACCOUNT, "STRIKE 15m " + ACCOUNT_LOCKED_AT + " 15m ATTEMPTS", "LAYOUT " + prefix + ":auth:fail:{key}");
        set("lockout-notice", "FIXED 5m 1 FIRST");

        RateLimit.Business business = config.business();
        set("channel-deals", "SLIDING 1d " + business.maxDealsPerChannelPerDay());
        set("user-disputes", "SLIDING 1w " + business.maxDisputesPerUserPerWeek());
        set("counter-offers", "FIXED FOREVER " + business.maxCounterOffersPerNegotiation());

        RateLimit.Outbound outbound = config.outbound();
        set("ton-api", "LEAKYBUCKET " + outbound.tonApiRate().stripTrailingZeros().toPlainString() + "/s 600");
        // The messages leave evenly, because the receiver counts them when they arrive. At most a minute of them waits.
        set("bot", "LEAKYBUCKET " + outbound.botMessagesPerSecond() + "/s " + 60 * outbound.botMessagesPerSecond());
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
