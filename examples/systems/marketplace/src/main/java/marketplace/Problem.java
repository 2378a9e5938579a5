package marketplace;

import com.fasterxml.jackson.databind.ObjectMapper;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/** The bodies of refused requests. */
final class Problem {
    private static final String TYPES = "https://api.admarketplace.com/errors/";
    private static final ObjectMapper JSON = new ObjectMapper();

    private Problem() { }

    static Map<String, Object> of(int status, String type, String title, String detail) {
        Map<String, Object> body = new LinkedHashMap<>();
        body.put("type", TYPES + type);
        body.put("title", title);
        body.put("status", status);
        body.put("detail", detail);
        return body;
    }

    /** Returns a 429 as in the document. A wait of null means that no waiting helps. */
    static Map<String, Object> limited(String detail, Duration wait) {
        Map<String, Object> body = of(429, "rate-limit-exceeded", "Rate Limit Exceeded", detail);
        if (wait != null) {
            body.put("retryAfter", seconds(wait));
        }
        return body;
    }

    static void send(HttpServletResponse response, Map<String, Object> body) throws IOException {
        response.setStatus((int) body.get("status"));
        response.setContentType("application/json");
        JSON.writeValue(response.getOutputStream(), body);
    }

    /** Returns whole seconds, rounded up, so that a client does not retry too early. */
    static long seconds(Duration d) {
        return (d.toMillis() + 999) / 1000;
    }
}
