package marketplace;

import jakarta.servlet.http.HttpServletRequest;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/** Signs logins and tokens. A token has the user and a signature, so no client can claim to be another user. */
@Component
public class Sessions {
    private final SecretKeySpec key;

    Sessions(@Value("${bot-token}") String botToken) {
        key = new SecretKeySpec(botToken.getBytes(StandardCharsets.UTF_8), "HmacSHA256");
    }

    /** Reports whether the bot has signed the login of a user. */
    boolean isLogin(String user, String hash) {
        return hash != null && same(sign("login:" + user), hash);
    }

    String tokenOf(String user) {
        return user + "." + sign("session:" + user);
    }

    /** Returns the user of a request, or null. */
    String userOf(HttpServletRequest request) {
        String header = request.getHeader("Authorization");
        int dot = header == null ? -1 : header.indexOf('.');
        if (dot < 0 || !header.startsWith("Bearer ")) {
            return null;
        }
        String user = header.substring("Bearer ".length(), dot);
        return same(sign("session:" + user), header.substring(dot + 1)) ? user : null;
    }

    private String sign(String text) {
        try {
            Mac mac = Mac.getInstance("HmacSHA256");
            mac.init(key);
            return HexFormat.of().formatHex(mac.doFinal(text.getBytes(StandardCharsets.UTF_8)));
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }

    private static boolean same(String a, String b) {
        return MessageDigest.isEqual(a.getBytes(StandardCharsets.UTF_8), b.getBytes(StandardCharsets.UTF_8));
    }
}
