package marketplace;

import java.net.URI;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.web.context.WebServerInitializedEvent;
import org.springframework.context.event.EventListener;

@SpringBootApplication
@EnableConfigurationProperties(RateLimit.class)
public class Application {
    private static final Logger LOG = LoggerFactory.getLogger(Application.class);

    @EventListener
    void listening(WebServerInitializedEvent event) {
        String host = event.getApplicationContext().getEnvironment().getProperty("server.address");
        LOG.info("listening on http://{}:{}", host, event.getWebServer().getPort());
    }

    public static void main(String[] args) {
        URI listen = URI.create("http://" + System.getenv().getOrDefault("LISTEN", "127.0.0.1:8080"));
        SpringApplication application = new SpringApplication(Application.class);
        application.setDefaultProperties(Map.of("server.address", listen.getHost(), "server.port", listen.getPort()));
        application.run(args);
    }
}
