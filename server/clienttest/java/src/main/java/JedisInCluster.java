import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import redis.clients.jedis.BuilderFactory;
import redis.clients.jedis.CommandArguments;
import redis.clients.jedis.CommandObject;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.RedisSentinelClient;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisClusterException;
import redis.clients.jedis.exceptions.JedisDataException;

/** Jedis' client of a cluster or of Sentinels, with everything as it comes. */
final class JedisInCluster implements ClusterClient {
    private final UnifiedJedis client;

    private JedisInCluster(UnifiedJedis client) {
        this.client = client;
    }

    static JedisInCluster ofCluster(List<String> addresses) {
        return new JedisInCluster(RedisClusterClient.create(nodes(addresses)));
    }

    static JedisInCluster ofSentinels(List<String> addresses) {
        return new JedisInCluster(RedisSentinelClient.builder().masterName("mymaster").sentinels(nodes(addresses)).build());
    }

    private static Set<HostAndPort> nodes(List<String> addresses) {
        return addresses.stream().map(HostAndPort::from).collect(Collectors.toSet());
    }

    private static CommandObject<Object> command(List<String> args) {
        byte[] name = args.get(0).getBytes(StandardCharsets.UTF_8);
        var rest = new CommandArguments(() -> name).key(args.get(1)).addObjects(args.subList(2, args.size()));
        return new CommandObject<>(rest, BuilderFactory.RAW_OBJECT);
    }

    /** One after the other: Jedis' pipelines follow no redirection, so that they end with the first leader. */
    @Override
    public List<Object> send(List<List<String>> commands) {
        var answers = new ArrayList<Object>();
        for (var args : commands) {
            try {
                answers.add(client.executeCommand(command(args)));
            } catch (RuntimeException e) {
                answers.add(e);
            }
        }
        return answers;
    }

    /** JedisClusterException is the class of the reply CLUSTERDOWN, and of Jedis' own failures. */
    @Override
    public boolean isReply(Exception failure) {
        return failure instanceof JedisClusterException
            ? failure.getMessage().startsWith("CLUSTERDOWN")
            : failure instanceof JedisDataException;
    }

    @Override
    public void close() {
        client.close();
    }
}
