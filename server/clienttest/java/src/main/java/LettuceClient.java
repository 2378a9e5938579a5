import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisConnectionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulRedisConnection;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;

/** Lettuce with one shared connection, as it comes. */
final class LettuceClient implements Client {
    private final RedisClient client;
    private StatefulRedisConnection<String, String> connection;

    LettuceClient(String host, int port, String password, int database) {
        var uri = RedisURI.builder().withHost(host).withPort(port).withDatabase(database);
        if (password != null) {
            uri.withPassword(password.toCharArray());
        }
        client = RedisClient.create(uri.build());
    }

    private StatefulRedisConnection<String, String> connection() {
        if (connection == null) {
            connection = client.connect();
        }
        return connection;
    }

    private record Keyword(String name) implements ProtocolKeyword {
        @Override
        public byte[] getBytes() {
            return name.getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public String toString() {
            return name;
        }
    }

    private RedisFuture<Object> send(List<String> args) {
        var rest = new CommandArgs<>(StringCodec.UTF8);
        args.stream().skip(1).forEach(rest::add);
        return connection().async().dispatch(new Keyword(args.get(0)), new AnyOutput(), rest);
    }

    @Override
    public Object call(List<String> args) throws Exception {
        try {
            return send(args).get();
        } catch (ExecutionException e) {
            throw (Exception) e.getCause();
        }
    }

    @Override
    public List<Object> pipeline(List<List<String>> commands) throws Exception {
        connection().setAutoFlushCommands(false);
        var futures = commands.stream().map(this::send).toList();
        connection().flushCommands();
        connection().setAutoFlushCommands(true);
        var replies = new ArrayList<>();
        for (var future : futures) {
            replies.add(future.get());
        }
        return replies;
    }

    @Override
    public List<Object> transaction(List<List<String>> commands) throws Exception {
        connection().async().multi();
        commands.forEach(this::send);
        return connection().async().exec().get().stream().toList();
    }

    @Override
    public boolean refused(Exception failure) {
        var cause = failure instanceof RedisConnectionException ? failure.getCause() : failure;
        return cause instanceof RedisCommandExecutionException
            && (cause.getMessage().startsWith("WRONGPASS") || cause.getMessage().startsWith("NOAUTH"));
    }

    @Override
    public void close() {
        client.shutdown();
    }
}
