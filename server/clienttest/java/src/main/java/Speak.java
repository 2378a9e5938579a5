import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Runs vectors.json through Jedis and Lettuce. foreign_test.go says how it is called. */
final class Speak {
    private final JsonObject vectors;
    private final Client client;

    private Speak(JsonObject vectors, Client client) {
        this.vectors = vectors;
        this.client = client;
    }

    /** A reply in the types of JSON. */
    private static JsonElement plain(Object value) {
        if (value instanceof byte[] bytes) {
            return new JsonPrimitive(new String(bytes, StandardCharsets.UTF_8));
        }
        if (value instanceof List<?> list) {
            var array = new JsonArray();
            list.forEach(v -> array.add(plain(v)));
            return array;
        }
        if (value instanceof Map<?, ?> map) {
            var object = new JsonObject();
            map.forEach((name, v) -> object.add(plain(name).getAsString(), plain(v)));
            return object;
        }
        if (value instanceof Map.Entry<?, ?> entry) {
            return plain(List.of(entry.getKey(), entry.getValue()));
        }
        return new Gson().toJsonTree(value);
    }

    /** A map may come as pairs, or in RESP2 as a flat array. */
    private static JsonElement asMap(JsonElement reply) {
        if (!reply.isJsonArray()) {
            return reply;
        }
        var flat = new ArrayList<JsonElement>();
        for (var element : reply.getAsJsonArray()) {
            if (element.isJsonArray()) {
                flat.addAll(element.getAsJsonArray().asList());
            } else {
                flat.add(element);
            }
        }
        var object = new JsonObject();
        for (int i = 0; i + 1 < flat.size(); i += 2) {
            object.add(flat.get(i).getAsString(), flat.get(i + 1));
        }
        return object;
    }

    private static boolean same(JsonElement want, JsonElement got) {
        if (want.isJsonPrimitive() && want.getAsString().equals("*")) {
            return got.isJsonPrimitive();
        }
        if (want.isJsonArray() && got.isJsonArray()) {
            var w = want.getAsJsonArray();
            var g = got.getAsJsonArray();
            for (int i = 0; i < w.size() && w.size() == g.size(); i++) {
                if (!same(w.get(i), g.get(i))) {
                    return false;
                }
            }
            return w.size() == g.size();
        }
        if (want.isJsonObject() && got.isJsonObject()) {
            var g = got.getAsJsonObject();
            return want.getAsJsonObject().keySet().equals(g.keySet())
                && want.getAsJsonObject().entrySet().stream().allMatch(e -> same(e.getValue(), g.get(e.getKey())));
        }
        return want.equals(got);
    }

    private static List<String> args(JsonElement vector) {
        return vector.getAsJsonObject().getAsJsonArray("send").asList().stream().map(JsonElement::getAsString).toList();
    }

    private static void check(JsonElement element, Object reply) {
        var vector = element.getAsJsonObject();
        boolean right;
        if (reply instanceof Exception failure) {
            right = vector.has("error") && failure.getMessage().contains(vector.get("error").getAsString());
        } else if (vector.has("map")) {
            right = same(vector.get("map"), asMap(plain(reply)));
        } else {
            right = vector.has("reply") && same(vector.get("reply"), plain(reply));
        }
        if (!right) {
            throw new IllegalStateException(vector + " answered " + (reply instanceof Exception ? reply : plain(reply)));
        }
    }

    private Object answer(List<String> args) {
        try {
            return client.call(args);
        } catch (Exception e) {
            return e;
        }
    }

    private void speak() throws Exception {
        for (var vector : vectors.getAsJsonArray("vectors")) {
            check(vector, answer(args(vector)));
        }

        var many = vectors.getAsJsonObject("pipeline");
        int times = many.get("times").getAsInt();
        var replies = client.pipeline(Collections.nCopies(times, args(many)));
        long admitted = replies.stream().filter(reply -> ((List<?>) reply).get(0).equals(1L)).count();
        if (replies.size() != times || admitted != many.get("admitted").getAsLong()) {
            throw new IllegalStateException(admitted + " of " + replies.size() + " admitted, not " + many.get("admitted"));
        }

        var steps = vectors.getAsJsonArray("transaction");
        var results = client.transaction(steps.asList().stream().map(Speak::args).toList());
        if (results.size() != steps.size()) {
            throw new IllegalStateException("EXEC answered " + plain(results));
        }
        for (int i = 0; i < results.size(); i++) {
            check(steps.get(i), results.get(i));
        }
    }

    /** Waits for the server to be back: what is sent meanwhile may fail. */
    private void back() throws InterruptedException {
        while (answer(List.of("PING")) instanceof Exception) {
            Thread.sleep(20);
        }
    }

    private static Client open(String name, String host, int port, String password) {
        return open(name, host, port, password, 0);
    }

    private static Client open(String name, String host, int port, String password, int database) {
        return name.equals("jedis") ? new JedisClient(host, port, password, database)
            : new LettuceClient(host, port, password, database);
    }

    private static void mustBeRefused(Client client) throws Exception {
        try (client) {
            client.call(List.of("RL.TOKENBUCKET", "k", "1", "1"));
        } catch (Exception e) {
            if (client.refused(e)) {
                return;
            }
            throw e;
        }
        throw new IllegalStateException("a client without the password is let in");
    }

    public static void main(String[] argv) throws Exception {
        String name = argv[0];
        String host = argv[3];
        int port = Integer.parseInt(argv[4]);
        var vectors = JsonParser.parseString(Files.readString(Path.of(argv[2]))).getAsJsonObject();
        try (var client = open(name, host, port, argv.length > 5 ? argv[5] : null,
                argv[1].equals("database") ? 1 : 0)) {
            var run = new Speak(vectors, client);
            run.speak();
            if (argv[1].equals("restart")) {
                System.out.println("READY");
                System.in.readNBytes("restarted\n".length());
                run.back();
                run.speak();
            } else if (argv[1].equals("password")) {
                mustBeRefused(open(name, host, port, "wrong"));
                mustBeRefused(open(name, host, port, null));
            }
        }
        System.out.println("DONE");
    }
}
