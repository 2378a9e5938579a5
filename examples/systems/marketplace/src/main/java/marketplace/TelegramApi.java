package marketplace;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** Sends messages of the bot, no faster than Telegram accepts them in total, to each chat, and to each group. */
@Component
public class TelegramApi {
    private final Pace pace;
    private final URI send;
    private final HttpClient http = HttpClient.newHttpClient();
    private final ObjectMapper json = new ObjectMapper();

    TelegramApi(Pace pace, @Value("${bot}") String address) {
        this.pace = pace;
        send = URI.create(address + "/sendMessage");
    }

    /** Sends a message when the limits allow it. The ids of groups are negative. */
    void send(String chat, String text) throws IOException {
        if (chat.startsWith("-")) {
            pace.acquire("bot", "all", "bot-chat", chat, "bot-group", chat);
        } else {
            pace.acquire("bot", "all", "bot-chat", chat);
        }
        byte[] body = json.writeValueAsBytes(Map.of("chat_id", chat, "text", text));
        TonApi.exchange(http, HttpRequest.newBuilder(send).timeout(Duration.ofSeconds(10)).header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofByteArray(body)).build(), HttpResponse.BodyHandlers.discarding());
    }
}
