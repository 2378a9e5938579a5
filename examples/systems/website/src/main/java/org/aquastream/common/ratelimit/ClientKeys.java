package org.aquastream.common.ratelimit;

import io.netty.handler.ipfilter.IpFilterRuleType;
import io.netty.handler.ipfilter.IpSubnetFilterRule;
import io.netty.util.NetUtil;
import jakarta.servlet.http.HttpServletRequest;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.regex.Pattern;
import org.springframework.stereotype.Component;

/** Finds the client that sent a request. It trusts only those parts of headers that trusted proxies wrote. */
@Component
public class ClientKeys {
    private static final Pattern USER = Pattern.compile("[!-~]{1,128}");
    private static final int CLIENT_BYTES_V6 = 8;

    private final List<IpSubnetFilterRule> trusted;
    private final String userHeader;

    public ClientKeys(RateLimitProperties properties) {
        trusted = properties.getTrustedProxies().stream().map(ClientKeys::network).toList();
        userHeader = properties.getUserHeader();
    }

    /** Returns "user:" and the user if the request has one, else "ip:" and the address. */
    String getClientKey(HttpServletRequest request) {
        String userId = extractUserId(request);
        return userId != null ? "user:" + userId : "ip:" + text(getClientIpAddress(request));
    }

    private String extractUserId(HttpServletRequest request) {
        if (userHeader == null || !trusts(peer(request))) {
            return null;
        }
        String user = request.getHeader(userHeader);
        return user != null && USER.matcher(user).matches() ? user : null;
    }

    /** Tries X-Forwarded-For from its end, then X-Real-IP, then the connection. */
    private InetAddress getClientIpAddress(HttpServletRequest request) {
        InetAddress peer = peer(request);
        if (!trusts(peer)) {
            return peer;
        }
        InetAddress client = claimed(String.join(",", Collections.list(request.getHeaders("X-Forwarded-For"))));
        if (client == null) {
            client = address(request.getHeader("X-Real-IP"));
        }
        return client != null ? client : peer;
    }

    /**
     * Reads a list from its end, up to an address of no trusted proxy or up to a word that is no address. Returns the
     * last address that it read, or null.
     */
    private InetAddress claimed(String list) {
        InetAddress client = null;
        String[] words = list.split(",");
        for (int i = words.length - 1; i >= 0; i--) {
            InetAddress hop = address(words[i]);
            if (hop == null) {
                break;
            }
            client = hop;
            if (!trusts(hop)) {
                break;
            }
        }
        return client;
    }

    private boolean trusts(InetAddress address) {
        return trusted.stream().anyMatch(network -> network.matches(new InetSocketAddress(address, 0)));
    }

    private static InetAddress peer(HttpServletRequest request) {
        return address(request.getRemoteAddr());
    }

    /** Reads a literal address, with or without a port. It never asks DNS. Returns null for anything else. */
    private static InetAddress address(String word) {
        if (word == null) {
            return null;
        }
        String literal = word.strip();
        if (literal.startsWith("[") && literal.contains("]")) {
            literal = literal.substring(1, literal.indexOf(']'));
        } else if (literal.indexOf(':') == literal.lastIndexOf(':')) {
            literal = literal.split(":", 2)[0];
        }
        byte[] bytes = NetUtil.createByteArrayFromIpAddressString(literal);
        try {
            return bytes == null ? null : InetAddress.getByAddress(bytes);
        } catch (UnknownHostException e) {
            return null;
        }
    }

    /** An IPv6 client has a whole /64, and may use another address of it for each request. */
    private static String text(InetAddress address) {
        byte[] bytes = address.getAddress();
        if (bytes.length == 4) {
            return address.getHostAddress();
        }
        Arrays.fill(bytes, CLIENT_BYTES_V6, bytes.length, (byte) 0);
        return NetUtil.bytesToIpAddress(bytes) + "/64";
    }

    private static IpSubnetFilterRule network(String prefix) {
        String[] parts = prefix.split("/", 2);
        int bits = parts.length == 2 ? Integer.parseInt(parts[1]) : parts[0].contains(":") ? 128 : 32;
        return new IpSubnetFilterRule(parts[0], bits, IpFilterRuleType.ACCEPT);
    }
}
