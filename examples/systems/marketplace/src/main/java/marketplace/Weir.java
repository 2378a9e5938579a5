package marketplace;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisException;
import io.lettuce.core.RedisURI;
import io.lettuce.core.SocketOptions;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.output.ArrayOutput;
import io.lettuce.core.output.CommandOutput;
import io.lettuce.core.output.IntegerOutput;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import io.lettuce.core.pubsub.RedisPubSubAdapter;
import io.lettuce.core.pubsub.StatefulRedisPubSubConnection;
import jakarta.annotation.PreDestroy;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/**
 * Asks the first node of weir that answers. If an answer is lost, it sends the request again with the same ID, so
 * the request counts once.
 */
@Component
public class Weir {
    private static final Duration TRY = Duration.ofMillis(1000);
    private static final Duration GIVE_UP = Duration.ofSeconds(10);
    private static final Duration PAUSE = Duration.ofMillis(20);
    private static final List<String> SEND_AGAIN = List.of("TRYAGAIN", "CLUSTERDOWN", "UNKNOWN", "OVERLOADED", "LOADING");

    /** The answer of weir. retryAfter is null if no waiting helps. For an allowed request, it is the delay. */
    public record Decision(boolean allowed, long remaining, Duration retryAfter, Duration resetAfter, long limit, String name) { }

    /** No node decided in time. */
    public static class Unavailable extends RuntimeException {
        Unavailable(Throwable cause) {
            super("weir is not reached", cause);
        }
    }

    private record Word(byte[] getBytes) implements ProtocolKeyword { }

    private final List<RedisURI> nodes = new ArrayList<>();
    private final RedisClient client = RedisClient.create();
    private final ConcurrentHashMap<RedisURI, StatefulRedisConnection<String, String>> connections = new ConcurrentHashMap<>();
    private volatile int preferred;

    Weir(@Value("${weir}") String addresses) {
        for (String address : addresses.split(",")) {
            RedisURI uri = RedisURI.create("redis://" + address.trim());
            uri.setTimeout(TRY);
            nodes.add(uri);
        }
        client.setOptions(ClientOptions.builder()
                .disconnectedBehavior(ClientOptions.DisconnectedBehavior.REJECT_COMMANDS)
                .cancelCommandsOnReconnectFailure(true)
                .socketOptions(SocketOptions.builder().connectTimeout(TRY).build())
                .build());
    }

    @PreDestroy
    void close() {
        client.shutdown();
    }

    /** Takes one unit of each policy, or of none. Policies and keys alternate. A blocked address is always denied. */
    public Decision check(String from, String... policiesAndKeys) {
        List<String> words = new ArrayList<>(List.of("RL.CHECK"));
        words.addAll(Arrays.asList(policiesAndKeys));
        if (from != null) {
            words.addAll(List.of("FROM", from));
        }
        words.addAll(List.of("ID", UUID.randomUUID().toString()));
        return decision(words);
    }

    /** Returns the decision without taking units. */
    public Decision look(String policy, String key) {
        return decision(List.of("RL.CHECK", policy, key, "COST", "0"));
    }

    public Decision decision(List<String> words) {
        List<Object> answer = send(words, () -> new ArrayOutput<>(StringCodec.UTF8));
        return new Decision(number(answer, 0) > 0, number(answer, 1), span(number(answer, 2)), span(number(answer, 3)),
                number(answer, 4), answer.size() > 5 ? String.valueOf(answer.get(5)) : "");
    }

    public long number(List<String> words) {
        return send(words, () -> new IntegerOutput<>(StringCodec.UTF8));
    }

    /**
     * Calls a listener with each message of a channel, from every node. A node publishes only the events of requests
     * that it received itself.
     */
    public void listen(String channel, Consumer<String> listener) {
        for (RedisURI node : nodes) {
            Thread thread = new Thread(() -> subscribe(node, channel, listener), "weir events");
            thread.setDaemon(true);
            thread.start();
        }
    }

    private void subscribe(RedisURI node, String channel, Consumer<String> listener) {
        while (true) {
            try { // after this, Lettuce subscribes again by itself
                StatefulRedisPubSubConnection<String, String> connection = client.connectPubSub(node);
                connection.addListener(new RedisPubSubAdapter<>() {
                    @Override
                    public void message(String from, String message) {
                        listener.accept(message);
                    }
                });
                connection.sync().subscribe(channel);
                return;
            } catch (RedisException e) {
                pause(Duration.ofSeconds(1));
            }
        }
    }

    private <T> T send(List<String> words, Supplier<CommandOutput<String, String, T>> output) {
        Word command = new Word(words.get(0).getBytes(StandardCharsets.US_ASCII));
        return onSomeNode(connection -> {
            CommandArgs<String, String> args = new CommandArgs<>(StringCodec.UTF8);
            words.subList(1, words.size()).forEach(args::add);
            return connection.sync().dispatch(command, output.get(), args);
        });
    }

    /** Asks one node after another until one answers. Use it only for requests that count once when repeated. */
    public <T> T onSomeNode(Function<StatefulRedisConnection<String, String>, T> call) {
        long end = System.nanoTime() + GIVE_UP.toNanos();
        while (true) {
            int at = preferred;
            try {
                return call.apply(connections.computeIfAbsent(nodes.get(at), client::connect));
            } catch (RedisCommandExecutionException e) {
                if (SEND_AGAIN.stream().noneMatch(e.getMessage()::startsWith)) {
                    throw e;
                }
                giveUp(end, e);
            } catch (RedisException e) {
                preferred = (at + 1) % nodes.size();
                giveUp(end, e);
            }
            pause(PAUSE);
        }
    }

    private static void giveUp(long end, RuntimeException e) {
        if (System.nanoTime() > end) {
            throw new Unavailable(e);
        }
    }

    static void pause(Duration d) {
        try {
            Thread.sleep(d.toMillis());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }

    private static long number(List<Object> answer, int at) {
        return (Long) answer.get(at);
    }

    private static Duration span(long ms) {
        return ms < 0 ? null : Duration.ofMillis(ms);
    }
}
