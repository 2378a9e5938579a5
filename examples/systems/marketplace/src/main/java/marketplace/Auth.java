package marketplace;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.MeterRegistry;
import jakarta.annotation.PostConstruct;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/** Logs users in. An attempt counts when it begins, so simultaneous attempts cannot pass the lock. */
@RestController
@RequestMapping("/api/v1/auth")
public class Auth {
    private static final Logger LOG = LoggerFactory.getLogger(Auth.class);
    /** If a correct attempt caused a lock, it lifts the lock within this time. */
    private static final Duration SETTLED = Duration.ofSeconds(1);

    record Login(String telegramUserId, String hash) { }

    private final Weir weir;
    private final Sessions sessions;
    private final TelegramApi bot;
    private final Counter failures;
    private final Counter lockouts;
    private final ObjectMapper json = new ObjectMapper();

    Auth(Weir weir, Sessions sessions, TelegramApi bot, MeterRegistry metrics) {
        this.weir = weir;
        this.sessions = sessions;
        this.bot = bot;
        failures = metrics.counter("ratelimit.auth.failures");
        lockouts = metrics.counter("ratelimit.auth.lockouts");
    }

    @PostMapping("/validate")
    CompletableFuture<ResponseEntity<Map<String, Object>>> validate(@RequestBody Login login, HttpServletRequest request) {
        String user = login.telegramUserId();
        if (user == null || !user.matches("[0-9]{1,20}")) {
            return now(400, Problem.of(400, "bad-request", "Bad Request", "telegramUserId must be a number"));
        }
        String address = ClientAddress.of(request);
        String[] counters = countersOf(user, address, user.equals(sessions.userOf(request)));
        Weir.Decision attempt = weir.check(request.getRemoteAddr(), counters);
        if (!attempt.allowed()) {
            return now(423, locked(attempt.retryAfter()));
        }
        if (sessions.isLogin(user, login.hash())) {
            List<String> forgive = new ArrayList<>(List.of("RL.FORGIVE"));
            forgive.addAll(Arrays.asList(counters));
            forgive.addAll(List.of("ID", UUID.randomUUID().toString()));
            weir.number(forgive);
            return now(200, Map.of("token", sessions.tokenOf(user)));
        }
        failures.increment();
        if (attempt.remaining() == 0) {
            lockouts.increment();
        }
        return later(attempt.retryAfter(), 401, wrong(Policies.LOCKED_AT - attempt.remaining()));
    }

    /**
     * Returns the policies that count an attempt, each with its key. Failures from one address lock the account for
     * that address only, so nobody can lock the account of somebody else. The bound for all addresses together stops
     * an attack from many of them. It does not concern a client that has a token of the account, which is its owner.
     */
    private static String[] countersOf(String user, String address, boolean known) {
        String pair = user + ":" + address;
        return known ? new String[] {Policies.LOCKOUT, pair} : new String[] {Policies.LOCKOUT, pair, Policies.LOCKOUT_ACCOUNT, user};
    }

    private static Map<String, Object> wrong(long failed) {
        Map<String, Object> body = Problem.of(401, "login-failed", "Login Failed", "The login is not valid");
        if (failed >= Policies.CAPTCHA_FROM) {
            body.put("captchaRequired", true);
            body.put("warning", "Solve the CAPTCHA; after " + Policies.LOCKED_AT + " failed logins your address is locked out for 15 minutes");
        }
        return body;
    }

    private static Map<String, Object> locked(Duration wait) {
        Map<String, Object> body = Problem.of(423, "account-locked", "Account Locked", "Too many failed logins");
        if (wait != null) {
            body.put("retryAfter", Problem.seconds(wait));
        }
        return body;
    }

    private static CompletableFuture<ResponseEntity<Map<String, Object>>> now(int status, Map<String, Object> body) {
        return CompletableFuture.completedFuture(response(status, body));
    }

    /** Answers after a delay. No thread waits for it, so delays do not block the server. */
    private static CompletableFuture<ResponseEntity<Map<String, Object>>> later(Duration delay, int status, Map<String, Object> body) {
        Executor then = CompletableFuture.delayedExecutor(delay.toMillis(), TimeUnit.MILLISECONDS);
        return CompletableFuture.supplyAsync(() -> response(status, body), then);
    }

    private static ResponseEntity<Map<String, Object>> response(int status, Map<String, Object> body) {
        ResponseEntity.BodyBuilder response = ResponseEntity.status(status);
        if (body.get("retryAfter") != null) {
            response.header("Retry-After", body.get("retryAfter").toString());
        }
        return response.body(body);
    }

    /** weir publishes each lock-out. */
    @PostConstruct
    void listen() {
        Executor settled = CompletableFuture.delayedExecutor(SETTLED.toMillis(), TimeUnit.MILLISECONDS);
        for (String policy : List.of(Policies.LOCKOUT, Policies.LOCKOUT_ACCOUNT)) {
            weir.listen("weir:lockout:policy:" + policy, event -> settled.execute(() -> notifyUser(policy, event)));
        }
    }

    /** Tells users that their account is locked. They hear it once, even if several instances receive the event. */
    private void notifyUser(String policy, String event) {
        try {
            JsonNode lockout = json.readTree(event);
            String key = lockout.get("key").asText();
            String[] parts = key.split(":", 2); // the user, and the address
            if (!weir.look(policy, key).allowed() && weir.check(null, "lockout-notice", parts[0]).allowed()) {
                bot.send(parts[0], "Too many failed logins: your account is locked for " + lockout.get("seconds").asLong() / 60
                        + " minutes, for " + (parts.length == 2 ? "the address " + parts[1] : "addresses where you are not logged in"));
            }
        } catch (IOException | RuntimeException e) {
            LOG.warn("a user was not told of the lock-out {}: {}", event, e.getMessage());
        }
    }
}
