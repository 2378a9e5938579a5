import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Runs commands through the cluster mode or the Sentinel mode of Lettuce or Jedis. clusterforeign_test.go says how it is called. */
public final class Cluster {
    private static final Gson GSON = new GsonBuilder().serializeNulls().create();

    private static Object plain(Object value) {
        if (value instanceof byte[] bytes) {
            return new String(bytes, StandardCharsets.UTF_8);
        }
        if (value instanceof List<?> list) {
            return list.stream().map(Cluster::plain).toList();
        }
        return value;
    }

    private static Map<String, Object> said(ClusterClient client, Object answer) {
        var said = new HashMap<String, Object>();
        if (answer instanceof Exception failure) {
            boolean reply = client.isReply(failure);
            said.put("error", reply ? failure.getMessage() : failure.toString());
            said.put("own", !reply);
        } else {
            said.put("reply", plain(answer));
        }
        return said;
    }

    private static List<List<String>> commands(String line) {
        return Arrays.stream(GSON.fromJson(line, String[][].class)).map(List::of).toList();
    }

    private static ClusterClient client(String name, List<String> addresses) {
        return switch (name) {
            case "lettuce-cluster" -> LettuceInCluster.ofCluster(addresses);
            case "lettuce-sentinel" -> LettuceInCluster.ofSentinels(addresses);
            case "jedis-cluster" -> JedisInCluster.ofCluster(addresses);
            case "jedis-sentinel" -> JedisInCluster.ofSentinels(addresses);
            default -> throw new IllegalArgumentException(name);
        };
    }

    public static void main(String[] argv) throws Exception {
        var addresses = List.of(argv).subList(1, argv.length);
        try (ClusterClient client = client(argv[0], addresses);
                var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            System.out.println("READY");
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                System.out.println(GSON.toJson(client.send(commands(line)).stream().map(answer -> said(client, answer)).toList()));
            }
        }
        System.out.println("DONE");
    }
}
