package example;

import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisException;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.api.sync.RedisCommands;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.web.filter.OncePerRequestFilter;

/** Asks weir about the client of every request, under one policy. */
public class LimitFilter extends OncePerRequestFilter {
    private static final Logger LOG = LoggerFactory.getLogger(LimitFilter.class);
    private static final String TYPES = "https://iana.org/assignments/http-problem-types#";

    private enum Command implements ProtocolKeyword {
        CHECK;

        @Override
        public byte[] getBytes() {
            return "RL.CHECK".getBytes(StandardCharsets.US_ASCII);
        }
    }

    private final RedisClient client;
    private final String policy;
    private StatefulRedisConnection<String, String> connection;

    public LimitFilter(RedisClient client, String policy) {
        this.client = client;
        this.policy = policy;
    }

    /** Connects at the first request, so the server also starts without weir. Then Lettuce keeps the connection. */
    private synchronized RedisCommands<String, String> weir() {
        if (connection == null) {
            connection = client.connect();
        }
        return connection.sync();
    }

    @Override
    protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
            throws ServletException, IOException {
        List<Object> answer;
        try {
            answer = weir().dispatch(Command.CHECK, new ArrayOutput<>(StringCodec.UTF8),
                    new CommandArgs<>(StringCodec.UTF8).add(policy).addKey(clientOf(request)));
        } catch (RedisException e) {
            LOG.warn("weir is not reached: {}", e.getMessage());
            problem(response, 503, "temporary-reduced-capacity",
                    "Request cannot be satisfied due to temporary server capacity constraints");
            return;
        }
        boolean allowed = number(answer, 0) > 0;
        long retryMs = number(answer, 2);
        long untilMs = allowed ? number(answer, 3) : retryMs;
        String name = '"' + (String) answer.get(5) + '"';
        response.setHeader("RateLimit-Policy", name + ";q=" + number(answer, 4));
        response.setHeader("RateLimit", name + ";r=" + number(answer, 1) + (untilMs < 0 ? "" : ";t=" + seconds(untilMs)));
        if (allowed) {
            hold(retryMs);
            chain.doFilter(request, response);
            return;
        }
        if (retryMs >= 0) {
            response.setHeader("Retry-After", Long.toString(Math.max(seconds(retryMs), 1)));
        }
        problem(response, 429, "quota-exceeded", "Request cannot be satisfied as assigned quota has been exceeded");
    }

    /** Returns the client that sent a request. An IPv6 client has a whole /64, and may change its address in it. */
    private static String clientOf(HttpServletRequest request) throws IOException {
        byte[] address = InetAddress.getByName(request.getRemoteAddr()).getAddress();
        if (address.length == 4) {
            return InetAddress.getByAddress(address).getHostAddress();
        }
        Arrays.fill(address, 8, 16, (byte) 0);
        return InetAddress.getByAddress(address).getHostAddress() + "/64";
    }

    private static long number(List<Object> answer, int at) {
        return (Long) answer.get(at);
    }

    private static long seconds(long ms) {
        return (ms + 999) / 1000;
    }

    /** Delays the request as a pacing policy requires. */
    private static void hold(long ms) throws ServletException {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new ServletException(e);
        }
    }

    private static void problem(HttpServletResponse response, int status, String type, String title) throws IOException {
        response.setStatus(status);
        response.setContentType("application/problem+json");
        response.getOutputStream().print(
                "{\"type\":\"" + TYPES + type + "\",\"title\":\"" + title + "\",\"status\":" + status + "}");
    }
}
