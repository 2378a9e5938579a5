import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisCommandExecutionException;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.api.StatefulConnection;
import io.lettuce.core.api.async.BaseRedisAsyncCommands;
import io.lettuce.core.cluster.RedisClusterClient;
import io.lettuce.core.codec.StringCodec;
import io.lettuce.core.protocol.CommandArgs;
import io.lettuce.core.protocol.ProtocolKeyword;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Lettuce's client of a cluster or of Sentinels, with everything as it comes. Commands that nobody waits for one by one are its pipeline. */
final class LettuceInCluster implements ClusterClient {
    private final AbstractRedisClient client;
    private final StatefulConnection<String, String> connection;
    private final BaseRedisAsyncCommands<String, String> commands;

    private LettuceInCluster(AbstractRedisClient client, StatefulConnection<String, String> connection,
            BaseRedisAsyncCommands<String, String> commands) {
        this.client = client;
        this.connection = connection;
        this.commands = commands;
    }

    static LettuceInCluster ofCluster(List<String> addresses) {
        var client = RedisClusterClient.create(addresses.stream().map(a -> RedisURI.create("redis://" + a)).toList());
        var connection = client.connect();
        return new LettuceInCluster(client, connection, connection.async());
    }

    static LettuceInCluster ofSentinels(List<String> addresses) {
        var client = RedisClient.create("redis-sentinel://" + String.join(",", addresses) + "#mymaster");
        var connection = client.connect();
        return new LettuceInCluster(client, connection, connection.async());
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

    private RedisFuture<Object> dispatch(List<String> args) {
        var rest = new CommandArgs<>(StringCodec.UTF8).addKey(args.get(1));
        args.stream().skip(2).forEach(rest::add);
        return commands.dispatch(new Keyword(args.get(0)), new AnyOutput(), rest);
    }

    private Object answer(RedisFuture<Object> future) {
        try {
            return future.get(RedisURI.DEFAULT_TIMEOUT, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            return e.getCause();
        } catch (Exception e) {
            return e;
        }
    }

    @Override
    public List<Object> send(List<List<String>> commands) {
        var futures = commands.stream().map(this::dispatch).toList();
        return futures.stream().map(this::answer).toList();
    }

    @Override
    public boolean isReply(Exception failure) {
        return failure instanceof RedisCommandExecutionException;
    }

    @Override
    public void close() {
        connection.close();
        client.shutdown();
    }
}
