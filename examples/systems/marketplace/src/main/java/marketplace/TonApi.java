package marketplace;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** Calls the API of the chain at the rate ton-api-rate, which all instances of this program share. */
@Component
public class TonApi {
    private final Pace pace;
    private final String address;
    private final HttpClient http = HttpClient.newHttpClient();

    TonApi(Pace pace, @Value("${ton}") String address) {
        this.pace = pace;
        this.address = address;
    }

    /** Blocks until the call may be sent. */
    String call(String path) throws IOException {
        pace.acquire("ton-api", "basic");
        HttpRequest request = HttpRequest.newBuilder(URI.create(address + path)).timeout(Duration.ofSeconds(10)).build();
        return exchange(http, request, HttpResponse.BodyHandlers.ofString());
    }

    static <T> T exchange(HttpClient http, HttpRequest request, HttpResponse.BodyHandler<T> handler) throws IOException {
        try {
            HttpResponse<T> response = http.send(request, handler);
            if (response.statusCode() != 200) {
                throw new IOException(request.uri() + " answered " + response.statusCode());
            }
            return response.body();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException(e);
        }
    }
}
