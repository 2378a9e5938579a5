package marketplace;

import java.util.List;
import org.springframework.stereotype.Component;

/**
 * Limits how much users may begin. Each method is one atomic step. A count of rows before an insert is not: two
 * simultaneous requests could pass it.
 */
@Component
public class BusinessLimits {
    /** If the program dies before it stores a deal, what the deal took comes back after this time. */
    private static final String UNTIL_STORED = "1m";
    private static final String FOREVER = "0";

    /** A request would exceed a business limit. */
    public static class Exceeded extends RuntimeException {
        final String constraint;
        final int limit;

        Exceeded(String constraint, int limit) {
            super(constraint + " is " + limit);
            this.constraint = constraint;
            this.limit = limit;
        }
    }

    private final Weir weir;
    private final RateLimit.Business config;

    BusinessLimits(Weir weir, RateLimit config) {
        this.weir = weir;
        this.config = config.business();
    }

    /**
     * Takes one of the advertiser's places, and holds one of the channel's deals of the day, or neither. Call keepDeal
     * when the deal is stored, or dropDeal if that fails.
     */
    void beginDeal(Deals.Deal deal) {
        int most = config.maxActiveDealsPerAdvertiser();
        if (!weir.decision(List.of("RL.ACQUIRE", places(deal), Integer.toString(most), UNTIL_STORED, "HOLDER", deal.id())).allowed()) {
            throw new Exceeded("MAX_ACTIVE_DEALS", most);
        }
        if (!weir.decision(List.of("RL.RESERVE", "channel-deals", deal.channel(), "1", UNTIL_STORED, "ID", deal.id())).allowed()) {
            throw new Exceeded("MAX_DEALS_PER_CHANNEL_PER_DAY", config.maxDealsPerChannelPerDay());
        }
    }

    /** Keeps the place of a stored deal until the deal ends, and counts the deal for its channel. */
    void keepDeal(Deals.Deal deal) {
        weir.number(List.of("RL.RENEW", places(deal), deal.id(), FOREVER));
        weir.number(List.of("RL.COMMIT", deal.id(), "1"));
    }

    /** Gives back what a deal took that was not stored. */
    void dropDeal(Deals.Deal deal) {
        endDeal(deal);
        weir.number(List.of("RL.CANCEL", deal.id()));
    }

    /** Frees the place of a deal. The deal still counts for its channel. */
    void endDeal(Deals.Deal deal) {
        weir.number(List.of("RL.RELEASE", places(deal), deal.id()));
    }

    void dispute(String user) {
        require("user-disputes", user, "MAX_DISPUTES_PER_WEEK", config.maxDisputesPerUserPerWeek());
    }

    void counterOffer(String negotiation) {
        require("counter-offers", negotiation, "MAX_COUNTER_OFFERS", config.maxCounterOffersPerNegotiation());
    }

    private static String places(Deals.Deal deal) {
        return "deals:" + deal.advertiser();
    }

    private void require(String policy, String key, String constraint, int limit) {
        if (!weir.check(null, policy, key).allowed()) {
            throw new Exceeded(constraint, limit);
        }
    }
}
