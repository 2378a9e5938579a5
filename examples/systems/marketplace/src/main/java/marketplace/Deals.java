package marketplace;

import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** The deals of the marketplace. A map stands in for its database. */
@RestController
@RequestMapping("/api/v1")
public class Deals {
    record Deal(String id, String advertiser, String channel) { }

    record NewDeal(String channel) { }

    record NewDispute(String deal) { }

    record Message(String chat, String text) { }

    /** The database did not take a deal. */
    static class NotStored extends RuntimeException {
        NotStored(String why) {
            super(why);
        }
    }

    private static final Logger LOG = LoggerFactory.getLogger(Deals.class);

    private final Map<String, Deal> deals = new ConcurrentHashMap<>();
    private final BusinessLimits limits;
    private final Sessions sessions;
    private final TonApi ton;
    private final TelegramApi bot;
    private final List<String> admins;

    Deals(BusinessLimits limits, Sessions sessions, TonApi ton, TelegramApi bot, @Value("${admins}") List<String> admins) {
        this.limits = limits;
        this.sessions = sessions;
        this.ton = ton;
        this.bot = bot;
        this.admins = admins;
    }

    @PostMapping("/deals")
    ResponseEntity<Deal> create(@RequestBody NewDeal wanted, HttpServletRequest request) {
        if (wanted.channel() == null || wanted.channel().isBlank()) {
            throw new NotStored("channel is missing");
        }
        Deal deal = new Deal(UUID.randomUUID().toString(), sessions.userOf(request), wanted.channel());
        try {
            limits.beginDeal(deal);
            store(deal);
            limits.keepDeal(deal);
        } catch (RuntimeException e) {
            deals.remove(deal.id());
            giveBack(deal);
            throw e;
        }
        return ResponseEntity.status(201).body(deal);
    }

    private void giveBack(Deal deal) {
        try {
            limits.dropDeal(deal);
        } catch (Weir.Unavailable e) {
            LOG.warn("deal {} gives its place and its unit back in a minute, by itself: {}", deal.id(), e.getMessage());
        }
    }

    /** Stores a deal, or fails as the database does. Its column for channels has 64 characters. */
    private void store(Deal deal) {
        if (deal.channel().length() > 64) {
            throw new NotStored("channel is longer than 64 characters");
        }
        deals.put(deal.id(), deal);
    }

    @GetMapping("/deals")
    List<Deal> list(HttpServletRequest request) {
        String user = sessions.userOf(request);
        return deals.values().stream().filter(deal -> deal.advertiser().equals(user)).toList();
    }

    /** Ends a deal as cancelled, expired, completed or refunded. */
    @DeleteMapping("/deals/{id}")
    ResponseEntity<Void> end(@PathVariable String id, HttpServletRequest request) {
        Deal deal = deals.get(id);
        if (deal == null || !deal.advertiser().equals(sessions.userOf(request))) {
            return ResponseEntity.notFound().build();
        }
        limits.endDeal(deal);
        deals.remove(id);
        return ResponseEntity.noContent().build();
    }

    @PostMapping("/deals/{id}/counter-offers")
    ResponseEntity<Void> counterOffer(@PathVariable String id) {
        limits.counterOffer(id);
        return ResponseEntity.status(201).build();
    }

    @PostMapping("/deals/{id}/deposit")
    String deposit(@PathVariable UUID id) throws IOException {
        return ton.call("/deposit/" + id);
    }

    @PostMapping("/deals/{id}/messages")
    ResponseEntity<Void> message(@PathVariable String id, @RequestBody Message message) throws IOException {
        bot.send(message.chat(), message.text());
        return ResponseEntity.noContent().build();
    }

    @PostMapping("/disputes")
    ResponseEntity<Void> dispute(@RequestBody NewDispute dispute, HttpServletRequest request) {
        limits.dispute(sessions.userOf(request));
        return ResponseEntity.status(201).build();
    }

    @GetMapping("/channels")
    List<String> channels() {
        return List.of("news", "sports");
    }

    @PostMapping("/creatives")
    ResponseEntity<Void> upload() {
        return ResponseEntity.status(201).build();
    }

    @GetMapping("/admin/deals")
    ResponseEntity<Integer> all(HttpServletRequest request) {
        return admins.contains(sessions.userOf(request)) ? ResponseEntity.ok(deals.size()) : ResponseEntity.status(403).build();
    }

    @ExceptionHandler(NotStored.class)
    ResponseEntity<Map<String, Object>> notStored(NotStored e) {
        return ResponseEntity.badRequest().body(Problem.of(400, "bad-request", "Bad Request", e.getMessage()));
    }

    @ExceptionHandler(BusinessLimits.Exceeded.class)
    ResponseEntity<Map<String, Object>> refused(BusinessLimits.Exceeded e) {
        Map<String, Object> body = new LinkedHashMap<>(Problem.of(409, "business-limit-exceeded", "Business Limit Exceeded", e.getMessage()));
        body.put("constraint", e.constraint);
        body.put("limit", e.limit);
        return ResponseEntity.status(409).body(body);
    }
}
