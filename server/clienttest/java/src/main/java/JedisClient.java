import java.nio.charset.StandardCharsets;
import java.util.List;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.PipeliningBase;
import redis.clients.jedis.RedisClient;
import redis.clients.jedis.Response;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.JedisAccessControlException;
import redis.clients.jedis.exceptions.JedisDataException;

/** Jedis with its pool and everything else as it comes. */
final class JedisClient implements Client {
    private final RedisClient client;

    JedisClient(String host, int port, String password, int database) {
        var config = DefaultJedisClientConfig.builder().password(password).database(database).build();
        client = RedisClient.builder().hostAndPort(host, port).clientConfig(config).build();
    }

    private static ProtocolCommand name(List<String> args) {
        byte[] raw = args.get(0).getBytes(StandardCharsets.UTF_8);
        return () -> raw;
    }

    private static String[] rest(List<String> args) {
        return args.subList(1, args.size()).toArray(String[]::new);
    }

    private static List<Response<Object>> send(PipeliningBase batch, List<List<String>> commands) {
        return commands.stream().map(args -> batch.sendCommand(name(args), rest(args))).toList();
    }

    @Override
    public Object call(List<String> args) {
        return client.sendCommand(name(args), rest(args));
    }

    @Override
    public List<Object> pipeline(List<List<String>> commands) {
        try (var pipeline = client.pipelined()) {
            var responses = send(pipeline, commands);
            pipeline.sync();
            return responses.stream().map(Response::get).toList();
        }
    }

    @Override
    public List<Object> transaction(List<List<String>> commands) {
        try (var transaction = client.multi()) {
            send(transaction, commands);
            return transaction.exec();
        }
    }

    @Override
    public boolean refused(Exception failure) {
        return failure instanceof JedisAccessControlException
            || failure instanceof JedisDataException && failure.getMessage().startsWith("NOAUTH");
    }

    @Override
    public void close() {
        client.close();
    }
}
