package org.aquastream;

import java.util.Map;
import java.util.UUID;
import org.aquastream.common.ratelimit.RateLimitProperties;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** The pages of the website. RateLimitFilter runs before all of them, so none has code for limits. */
@SpringBootApplication
@EnableConfigurationProperties(RateLimitProperties.class)
@RestController
public class Website {
    @GetMapping("/api/users/{id}")
    Map<String, Object> user(@PathVariable UUID id) {
        return Map.of("id", id);
    }

    /** In this example every password is wrong. */
    @PostMapping("/api/auth/login")
    @ResponseStatus(HttpStatus.UNAUTHORIZED)
    Map<String, Object> login() {
        return Map.of("error", "wrong password");
    }

    @RequestMapping("/**")
    Map<String, Object> others() {
        return Map.of("data", "...");
    }

    public static void main(String[] args) {
        SpringApplication.run(Website.class, args);
    }
}
